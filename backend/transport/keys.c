/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "backend/transport/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool same(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
	return a && b && a_len == b_len && !memcmp(a, b, a_len);
}

static const struct agent_key *agent_has(const struct agent_key *agent,
					 size_t count,
					 const struct keyfile *file)
{
	for (size_t k = 0; k < count; k++)
		if (same(agent[k].blob, agent[k].len, file->blob,
			 file->blob_len))
			return &agent[k];
	return NULL;
}

static int add(struct ssh_keys *keys, const char *path, const uint8_t *blob,
	       size_t len)
{
	struct ssh_key *k = &keys->key[keys->count];

	for (size_t j = 0; j < keys->count; j++)
		if (same(keys->key[j].blob, keys->key[j].len, blob, len))
			return 0;
	if (keys->count == KEYS_MAX)
		return 0;
	*k = (struct ssh_key) { .path = path ? strdup(path) : NULL,
				.len = len };
	if (blob)
		k->blob = malloc(len ? len : 1);
	if ((path && !k->path) || (blob && !k->blob)) {
		free(k->path);
		free(k->blob);
		return -ENOMEM;
	}
	if (blob)
		memcpy(k->blob, blob, len);
	keys->count++;
	return 0;
}

static void leave(struct ssh_keys *keys, const char *name, enum key_use use)
{
	size_t at = strlen(keys->left);

	if (!key_use_text(use))
		return;
	keys->ssh_can = keys->ssh_can || use == KEY_RSA ||
			use == KEY_HARDWARE || use == KEY_OTHER;
	snprintf(keys->left + at, sizeof(keys->left) - at, "%s%.90s %s",
		 at ? ", " : "", name, key_use_text(use));
}

static int file_choose(const char *path, const struct agent_key *agent,
		       size_t count, struct ssh_keys *keys)
{
	const struct agent_key *held;
	struct keyfile file;
	enum key_use use;
	int rc = 0;

	keyfile_look(path, &file);
	held = agent_has(agent, count, &file);
	use = held ? held->use : file.use;
	if (held && use == KEY_PLAIN)
		rc = add(keys, NULL, file.blob, file.blob_len);
	else if (use == KEY_PLAIN)
		rc = add(keys, path, file.blob, file.blob_len);
	else
		leave(keys, path, use);
	keyfile_fini(&file);
	return rc;
}

int keys_choose(const struct sshconf *conf, const struct agent_key *agent,
		size_t count, struct ssh_keys *keys)
{
	int rc = 0;

	*keys = (struct ssh_keys) { 0 };
	for (size_t k = 0; k < conf->identities && !rc; k++)
		rc = file_choose(conf->identity[k], agent, count, keys);
	if (conf->identities_only)
		return rc;
	for (size_t k = 0; k < count && !rc; k++) {
		if (agent[k].use == KEY_PLAIN)
			rc = add(keys, NULL, agent[k].blob, agent[k].len);
		else
			leave(keys, "a key of the ssh-agent", agent[k].use);
	}
	return rc;
}

void keys_fini(struct ssh_keys *keys)
{
	for (size_t k = 0; k < keys->count; k++) {
		free(keys->key[k].path);
		free(keys->key[k].blob);
	}
	*keys = (struct ssh_keys) { 0 };
}
