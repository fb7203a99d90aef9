/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The cluster document. It comes from the console's configuration over the
 * wire, so everything in it is checked here, with the place of what is wrong.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/event.h"
#include "backend/provider/lend.h"
#include "backend/provider/provider_priv.h"

#define DOMAINS_MAX 64
#define DRIVES_MAX 64 /* of a domain */
#define ABSENT_S 60
#define LAYOUT_UNSET VDISK_LOG

/* ---- pieces ------------------------------------------------------------- */

int doc_name(const json_t *j, const char *key, size_t max, const char **name,
	     const char *where, struct err *err)
{
	const char *s = json_string_value(json_object_get(j, key));
	size_t len = s ? strlen(s) : 0;

	if (!len || len > max || s[0] == '.' || s[0] == '-' ||
	    strspn(s, "abcdefghijklmnopqrstuvwxyz"
		      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != len)
		return err_set(err, -EINVAL,
			       "%s: \"%s\" must be 1 to %zu letters, digits, "
			       "'.', '_' or '-', the first neither '.' nor '-'",
			       where, key, max);
	*name = s;
	return 0;
}

int doc_bytes(const json_t *j, const char *key, uint64_t unset, uint64_t *bytes,
	      const char *where, struct err *err)
{
	const json_t *v = json_object_get(j, key);

	*bytes = unset;
	if (!v || json_is_null(v))
		return 0;
	if (!json_is_integer(v) || json_integer_value(v) < 0 ||
	    json_integer_value(v) > EVENT_INT_MAX)
		return err_set(err, -EINVAL,
			       "%s: \"%s\" must be a whole number, 0 or more",
			       where, key);
	*bytes = (uint64_t)json_integer_value(v);
	return 0;
}

static int rate(const json_t *j, const char *key, double max, double *value,
		const char *where, struct err *err)
{
	const json_t *v = json_object_get(j, key);

	*value = 0.0;
	if (!v || json_is_null(v))
		return 0;
	*value = json_number_value(v);
	if (!json_is_number(v) || !(*value >= 0.0 && *value <= max))
		return err_set(err, -EINVAL,
			       "%s: \"%s\" must be a number from 0 to %.0f",
			       where, key, max);
	return 0;
}

int doc_shape(const json_t *j, struct link_opts *shape, const char *where,
	      struct err *err)
{
	double bytes_s, iops, latency_us;
	bool half = shape->half_duplex;
	int rc;

	if (!j || json_is_null(j)) {
		*shape = (struct link_opts) { .half_duplex = half };
		return 0;
	}
	if (!json_is_object(j))
		return err_set(err, -EINVAL, "%s must be an object", where);
	rc = rate(j, "rate_bytes_s", 1e15, &bytes_s, where, err);
	if (!rc)
		rc = rate(j, "rate_iops", 1e12, &iops, where, err);
	if (!rc)
		rc = rate(j, "latency_us", 60e6, &latency_us, where, err);
	if (!rc)
		*shape = (struct link_opts) {
			.rate_bytes_s = (uint64_t)bytes_s,
			.rate_iops = (uint64_t)iops,
			.latency_ns = (uint64_t)(latency_us * 1000.0),
			.half_duplex = half,
		};
	return rc;
}

/* The number of a word, or of `unset` when there is none. */
static int doc_word(const json_t *j, const char *key,
		    const char *(*name)(unsigned), unsigned unset,
		    uint8_t *value, const char *where, struct err *err)
{
	const json_t *v = json_object_get(j, key);
	const char *s = json_string_value(v);
	char words[64] = "";
	size_t at = 0;

	*value = (uint8_t)unset;
	if (!v || json_is_null(v))
		return 0;
	for (unsigned k = 0; strcmp(name(k), "-") != 0; k++) {
		if (s && !strcmp(s, name(k))) {
			*value = (uint8_t)k;
			return 0;
		}
		at += (size_t)snprintf(words + at, sizeof(words) - at, "%s%s",
				       k ? " or " : "", name(k));
	}
	return err_set(err, -EINVAL, "%s: \"%s\" must be %s", where, key,
		       words);
}

/* The engine's, whatever is asked for. */
static uint64_t log_unit_bytes(void)
{
	struct vdisk_policy any = { .raid = RAID_1,
				    .m = 1,
				    .layout = VDISK_LOG };

	id_assert(!vdisk_policy_fit(&any, VDISK_MEMBERS_MAX, NULL, NULL));
	return any.stripe_unit_bytes;
}

int doc_policy(const json_t *j, struct vdisk_policy *policy, const char *where,
	       struct err *err)
{
	uint64_t raid, ftt, k, unit;
	uint8_t layout, codec;
	int rc = doc_bytes(j, "raid", UINT64_MAX, &raid, where, err);

	if (!rc)
		rc = doc_bytes(j, "ftt", UINT64_MAX, &ftt, where, err);
	if (!rc)
		rc = doc_bytes(j, "k", 0, &k, where, err);
	if (!rc)
		rc = doc_word(j, "layout", vdisk_layout_name, LAYOUT_UNSET,
			      &layout, where, err);
	if (!rc)
		rc = doc_word(j, "compression", vdisk_codec_name, VDISK_RAW,
			      &codec, where, err);
	if (!rc)
		rc = doc_bytes(j, "stripe_unit_bytes",
			       layout == VDISK_LOG ? log_unit_bytes()
						   : 64 * KIB,
			       &unit, where, err);
	if (rc)
		return rc;
	if (layout == VDISK_LOG && unit != log_unit_bytes())
		return err_set(err, -EINVAL,
			       "%s: the stripe unit of the log layout is "
			       "%llu KiB; leave it out, or say layout inplace",
			       where,
			       (unsigned long long)(log_unit_bytes() / KIB));
	if (raid != 0 && raid != 1 && raid != 5 && raid != 6)
		return err_set(err, -EINVAL,
			       "%s: \"raid\" must be 0, 1, 5 or 6", where);
	if (ftt == UINT64_MAX)
		ftt = raid == 6 ? 2 : raid == 0 ? 0 : 1;
	if (ftt > 3 || k > VDISK_MEMBERS_MAX || unit > MIB)
		return err_set(err, -EINVAL,
			       "%s: at most 3 failures, %d members and stripe "
			       "units of 1 MiB",
			       where, VDISK_MEMBERS_MAX);
	*policy = (struct vdisk_policy) { .raid = (enum raid_level)raid,
					  .k = (uint8_t)k,
					  .m = (uint8_t)ftt,
					  .stripe_unit_bytes = (uint32_t)unit,
					  .layout = layout,
					  .codec = codec };
	return 0;
}

/* ---- the document ------------------------------------------------------- */

static int read_drive(struct p_domain *dom, struct p_drive *d, const json_t *j,
		      const char *where, struct err *err)
{
	const char *name, *path;
	int rc = doc_name(j, "name", PLACE_NAME - 1, &name, where, err);

	if (rc)
		return rc;
	for (const struct p_drive *o = dom->drive; o < d; o++)
		if (!strcmp(o->name, name))
			return err_set(err, -EINVAL,
				       "%s: two drives are named %s", where,
				       name);
	snprintf(d->name, sizeof(d->name), "%s", name);
	path = json_string_value(json_object_get(j, "path"));
	if (!path || path[0] != '/')
		return err_set(err, -EINVAL,
			       "%s: \"path\" must be an absolute path", where);
	d->path = strdup(path);
	if (!d->path)
		return err_set(err, -ENOMEM, "out of memory");
	d->domain = dom;
	d->shape.half_duplex = true;
	rc = doc_bytes(j, "size_bytes", 0, &d->most_bytes, where, err);
	if (!rc)
		rc = doc_shape(json_object_get(j, "shape"), &d->shape, where,
			       err);
	return rc;
}

static int read_domain(struct provider *p, struct p_domain *dom,
		       const json_t *j, size_t at, struct err *err)
{
	const json_t *drives = json_object_get(j, "drives"), *one;
	char where[80];
	const char *name;
	size_t k;
	int rc;

	snprintf(where, sizeof(where), "cluster.domains[%zu]", at);
	rc = doc_name(j, "name", PLACE_NAME - 1, &name, where, err);
	if (rc)
		return rc;
	if (domain_find(p, name))
		return err_set(err, -EINVAL, "%s: two domains are named %s",
			       where, name);
	snprintf(dom->name, sizeof(dom->name), "%s", name);
	dom->far = *p->node && strcmp(p->node, name) != 0;
	rc = doc_shape(json_object_get(j, "link"), &dom->shape, where, err);
	if (rc)
		return rc;
	if (json_array_size(drives) > DRIVES_MAX)
		return err_set(err, -EINVAL, "%s: at most %d drives", where,
			       DRIVES_MAX);
	dom->drive = calloc(json_array_size(drives) + 1, sizeof(*dom->drive));
	if (!dom->drive)
		return err_set(err, -ENOMEM, "out of memory");
	json_array_foreach(drives, k, one) {
		snprintf(where, sizeof(where),
			 "cluster.domains[%zu].drives[%zu]", at, k);
		dom->drives++;
		rc = read_drive(dom, &dom->drive[k], one, where, err);
		if (rc)
			return rc;
	}
	return 0;
}

static int read_policies(struct provider *p, const json_t *list,
			 struct err *err)
{
	const json_t *one;
	size_t k;

	json_array_foreach(list, k, one) {
		struct vdisk_policy policy;
		const char *name;
		char where[80];
		int rc;

		snprintf(where, sizeof(where), "cluster.policies[%zu]", k);
		rc = doc_name(one, "name", PLACE_NAME - 1, &name, where, err);
		if (!rc)
			rc = doc_policy(one, &policy, where, err);
		if (!rc)
			rc = policy_put(p, name, &policy);
		if (rc)
			return rc;
	}
	return 0;
}

static int read_top(struct provider *p, const json_t *doc, struct err *err)
{
	const char *title = json_string_value(json_object_get(doc, "title"));
	const char *name;
	double absent_s;
	int rc;

	if (!json_is_object(doc))
		return err_set(err, -EINVAL,
			       "cluster_open: \"cluster\" must be an object");
	rc = doc_name(doc, "name", 63, &name, "cluster", err);
	if (!rc)
		rc = rate(doc, "absent_delay_s", 86400, &absent_s, "cluster",
			  err);
	if (rc)
		return rc;
	if (!json_object_get(doc, "absent_delay_s"))
		absent_s = ABSENT_S;
	p->absent_ns = (uint64_t)(absent_s * 1e9);
	snprintf(p->name, sizeof(p->name), "%s", name);
	event_text(p->title, sizeof(p->title), title ? title : name);
	if (json_object_get(doc, "node")) {
		rc = doc_name(doc, "node", PLACE_NAME - 1, &name, "cluster",
			      err);
		if (rc)
			return rc;
		snprintf(p->node, sizeof(p->node), "%s", name);
	}
	p->is_virtual = json_is_true(json_object_get(doc, "virtual"));
	p->create = json_is_true(json_object_get(doc, "create"));
	return 0;
}

int doc_read(struct provider *p, const json_t *doc, struct err *err)
{
	const json_t *domains = json_object_get(doc, "domains"), *one;
	int rc = lend_read(p, doc, err);
	size_t k;

	if (!rc)
		rc = read_top(p, doc, err);
	if (rc)
		return rc;
	if (!json_array_size(domains) || json_array_size(domains) > DOMAINS_MAX)
		return err_set(err, -EINVAL,
			       "cluster: \"domains\" must be 1 to %d domains",
			       DOMAINS_MAX);
	p->domain = calloc(json_array_size(domains), sizeof(*p->domain));
	if (!p->domain)
		return err_set(err, -ENOMEM, "out of memory");
	json_array_foreach(domains, k, one) {
		rc = read_domain(p, &p->domain[k], one, k, err);
		p->domains++;
		if (rc)
			return rc;
	}
	if (*p->node && !domain_find(p, p->node))
		return err_set(
			err, -EINVAL,
			"cluster: \"node\" is %s, and no domain is named "
			"so",
			p->node);
	p->doc_vdisks = json_incref(json_object_get(doc, "vdisks"));
	return read_policies(p, json_object_get(doc, "policies"), err);
}
