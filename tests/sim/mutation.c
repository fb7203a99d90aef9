/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The planted faults, by name: engine/vdisk/mutation.h. */
#include "engine/vdisk/mutation.h"

enum mutation mutation;

#define NAME(name) #name,
const char *const mutation_name[MUTATIONS] = { "none", MUTATION_LIST(NAME) };
