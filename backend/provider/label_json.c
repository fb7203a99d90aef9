/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A component's label as one agent tells another of it, which may not open the
 * component itself: enough to show its vDisk, and to know what belongs to it.
 * What is opened is read from the components.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/provider/provider_priv.h"

void uuid_hex(const uint8_t uuid[16], char text[33])
{
	for (unsigned k = 0; k < 16; k++)
		sprintf(text + (size_t)2 * k, "%02x", uuid[k]);
}

bool uuid_read(const char *text, uint8_t uuid[16])
{
	if (!text || strspn(text, "0123456789abcdef") != 32 || text[32])
		return false;
	for (unsigned k = 0; k < 16; k++) {
		const char pair[3] = { text[2 * k], text[2 * k + 1], '\0' };

		uuid[k] = (uint8_t)strtoul(pair, NULL, 16);
	}
	return true;
}

json_t *label_json(const struct vdisk_label_facts *facts)
{
	const struct vdisk_policy *policy = &facts->policy;
	json_t *slots = json_array();
	char uuid[33];

	uuid_hex(facts->uuid, uuid);
	for (unsigned k = 0; k < facts->slots; k++) {
		const struct vdisk_slot *slot = &facts->slot[k];

		json_array_append_new(
			slots, json_pack("[s, s, s, i, i]", slot->domain,
					 slot->drive, slot->component,
					 (int)slot->role, (int)slot->state));
	}
	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:[i, i, i, i, i, i], s:o}",
			 "cluster", facts->cluster, "name", facts->name, "uuid",
			 uuid, "epoch", (json_int_t)facts->epoch, "size_bytes",
			 (json_int_t)facts->size_bytes, "policy",
			 (int)policy->raid, (int)policy->k, (int)policy->m,
			 (int)policy->stripe_unit_bytes, (int)policy->layout,
			 (int)policy->codec, "slots", slots);
}

/* A name as labels hold them. */
static bool text_read(const json_t *j, char *text, size_t len)
{
	const char *s = json_string_value(j);

	if (!s || !*s || strlen(s) >= len ||
	    s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			"0123456789._-")])
		return false;
	snprintf(text, len, "%s", s);
	return true;
}

/* A whole number from 0 to most. */
static bool number_read(const json_t *j, json_int_t most, json_int_t *number)
{
	*number = json_integer_value(j);
	return json_is_integer(j) && *number >= 0 && *number <= most;
}

static bool slot_read(const json_t *j, struct vdisk_slot *slot)
{
	json_int_t role, state;

	if (!text_read(json_array_get(j, 0), slot->domain,
		       sizeof(slot->domain)) ||
	    !text_read(json_array_get(j, 1), slot->drive,
		       sizeof(slot->drive)) ||
	    !text_read(json_array_get(j, 2), slot->component,
		       sizeof(slot->component)) ||
	    !number_read(json_array_get(j, 3), MEMBER_WITNESS, &role) ||
	    !number_read(json_array_get(j, 4), MEMBER_REBUILDING, &state))
		return false;
	slot->role = (enum member_role)role;
	slot->state = (enum member_state)state;
	return true;
}

static bool policy_read(const json_t *j, struct vdisk_policy *policy)
{
	static const json_int_t most[] = { 6, VDISK_MEMBERS_MAX, 3, MIB, 1, 2 };
	json_int_t n[array_len(most)];

	for (size_t k = 0; k < array_len(most); k++)
		if (!number_read(json_array_get(j, k), most[k], &n[k]))
			return false;
	*policy = (struct vdisk_policy) { .raid = (enum raid_level)n[0],
					  .k = (uint8_t)n[1],
					  .m = (uint8_t)n[2],
					  .stripe_unit_bytes = (uint32_t)n[3],
					  .layout = (uint8_t)n[4],
					  .codec = (uint8_t)n[5] };
	return true;
}

bool label_read(const json_t *j, struct vdisk_label_facts *facts)
{
	const json_t *slots = json_object_get(j, "slots"), *one;
	json_int_t epoch, size_bytes;
	size_t k;

	*facts = (struct vdisk_label_facts) { 0 };
	if (!text_read(json_object_get(j, "cluster"), facts->cluster,
		       sizeof(facts->cluster)) ||
	    !text_read(json_object_get(j, "name"), facts->name,
		       sizeof(facts->name)) ||
	    !uuid_read(json_string_value(json_object_get(j, "uuid")),
		       facts->uuid) ||
	    !number_read(json_object_get(j, "epoch"), INT64_MAX, &epoch) ||
	    !number_read(json_object_get(j, "size_bytes"), INT64_MAX,
			 &size_bytes) ||
	    !policy_read(json_object_get(j, "policy"), &facts->policy) ||
	    json_array_size(slots) > VDISK_MEMBERS_MAX)
		return false;
	json_array_foreach(slots, k, one)
		if (!slot_read(one, &facts->slot[k]))
			return false;
	facts->slots = (unsigned)json_array_size(slots);
	facts->epoch = (uint64_t)epoch;
	facts->size_bytes = (uint64_t)size_bytes;
	return true;
}
