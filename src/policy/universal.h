/* The policy that the library carries: the bytes of src/policy/universal.safetensors, which bench/evocg/train_universal.sh makes.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_POLICY_UNIVERSAL_H
#define HT_POLICY_UNIVERSAL_H

extern const unsigned char ht_universal_policy[], ht_universal_policy_end[];

#endif
