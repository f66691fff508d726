/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Module parameters with a range.
 *
 *   static struct tcp_param jtcp_m = { .value = 1, .min = 1, .max = 16 };
 *   module_param_cb(m, &tcp_param_ops, &jtcp_m, 0644);
 *
 * A value outside the range, however large, and what is no number is refused
 * with EINVAL, when the module is loaded and later. Read it with
 * tcp_param_get(): a write may happen at any time.
 */
#ifndef TCP_PARAM_H
#define TCP_PARAM_H

#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/sysfs.h>

/**
 * struct tcp_param - a module parameter
 * @value: current value; initialise with the default
 * @min: smallest value allowed
 * @max: largest value allowed
 */
struct tcp_param {
	u32 value;
	u32 min;
	u32 max;
};

static inline u32 tcp_param_get(const struct tcp_param *param)
{
	return READ_ONCE(param->value);
}

static int tcp_param_set_op(const char *val, const struct kernel_param *kp)
{
	struct tcp_param *param = kp->arg;
	u32 value;

	/* kstrtou32() says ERANGE where a number does not fit 32 bits */
	if (kstrtou32(val, 0, &value) || value < param->min ||
	    value > param->max)
		return -EINVAL;
	WRITE_ONCE(param->value, value);
	return 0;
}

static int tcp_param_get_op(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%u\n", tcp_param_get(kp->arg));
}

static const struct kernel_param_ops tcp_param_ops = {
	.set = tcp_param_set_op,
	.get = tcp_param_get_op,
};

/* Every module has parameters, so here every module says what it was built of. */
MODULE_INFO(sources, TCP_SOURCES);

#endif /* TCP_PARAM_H */
