/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A lab's state file from anywhere, and words of a command line. What is taken
 * stays within its bounds, and is the same when it is written and read again.
 */
#include <stdlib.h>
#include <string.h>

#include "backend/lab/lab_impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct lab empty = { .root = "/srv/labs", .name = "a" };

static void check_again(const struct lab *lab)
{
	struct lab back = empty;
	char *text = lab_state_text(lab), *again,
	     *conf = lab_text_conf(lab, 0, NULL);

	id_assert(text && conf);
	id_assert(!lab_state_read(text, strlen(text), &back, NULL));
	again = lab_state_text(&back);
	id_assert(again && !strcmp(text, again));
	free(text);
	free(again);
	free(conf);
}

static void check_state(const uint8_t *data, size_t size)
{
	struct lab lab = empty;

	if (lab_state_read((const char *)data, size, &lab, NULL))
		return;
	id_assert(lab.nodes >= 1 && lab.nodes <= LAB_NODES_MAX);
	id_assert(lab.drives >= 0 && lab.drives <= LAB_DRIVES_MAX);
	id_assert(!lab.made[0] ||
		  !strncmp(lab.root, lab.made, strlen(lab.made)));
	check_again(&lab);
}

static void check_words(const uint8_t *data, size_t size)
{
	struct lab lab = empty;
	struct lab_range range;
	char word[64], rate_word[24];
	uint32_t net;
	double rate;
	int node;

	if (size >= sizeof(word))
		return;
	memcpy(word, data, size);
	word[size] = '\0';
	lab.nodes = 7;
	node = lab_node_find(&lab, word, NULL);
	id_assert(node == -EINVAL || (node >= 0 && node < lab.nodes));
	if (!lab_name_check(word, NULL))
		id_assert(strlen(word) < LAB_NAME_MAX);
	if (!lab_rate(word, &rate, NULL))
		id_assert(rate >= 8000 && rate <= 12.5e9 &&
			  lab_rate_text(rate, rate_word, sizeof(rate_word)));
	if (!lab_range_parse(word, &range))
		id_assert(range.bits >= 0 && range.bits <= 32);
	if (!lab_net_parse(word, &net, NULL))
		id_assert(!(net & 255));
	lab_netns_is("a", word);
	lab_root_check(word, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_state(data, size);
	check_words(data, size);
	return 0;
}
