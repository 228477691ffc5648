/* The version: this file is its only place; CMake reads it. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_VERSION_H
#define HALFTONE_VERSION_H
#include "halftone/status.h"
#define HT_VERSION_MAJOR 0
#define HT_VERSION_MINOR 1
#define HT_VERSION_PATCH 0
#ifdef __cplusplus
extern "C" {
#endif
HT_API const char *ht_version(void); /* "0.1.0" */
#ifdef __cplusplus
}
#endif
#endif
