// What the eBPF program and its reader share: one of these for each processor, in a map that the reader has mapped.
// Read by C and C++.
#pragma once

#include <linux/types.h>

// A line for each processor: they switch independently. It has one word, so that no reader sees half of a switch.
struct idle_processor {
  // Bit 0: it is idle. Above, in nanoseconds modulo 2^63: how long it was idle since the program was attached; while it
  // is idle, less the moment (CLOCK_MONOTONIC) when it became so. 0 until it is seen to become idle.
  __u64 state;
  __u64 unused[7];
};

// Of one processor, modulo 2^63.
static inline __u64 idle_ns_until(__u64 now, __u64 state) { return (state >> 1) + ((state & 1) != 0 ? now : 0); }

static inline __u64 state_after_switch(__u64 now, __u64 state, int is_idle) {
  const __u64 idle_ns = idle_ns_until(now, state);
  return is_idle ? ((idle_ns - now) << 1) + 1 : idle_ns << 1;
}
