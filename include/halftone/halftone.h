/* halftone: symmetric positive definite systems in mixed precision. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_H
#define HALFTONE_H
#include "halftone/about.h"
#include "halftone/context.h"
#include "halftone/facts.h"
#include "halftone/generate.h"
#include "halftone/matrix.h"
#include "halftone/options.h"
#include "halftone/precision.h"
#include "halftone/report.h"
#include "halftone/solver.h"
#include "halftone/status.h"
#include "halftone/trace.h"
#include "halftone/train.h"
#include "halftone/version.h"
#endif
