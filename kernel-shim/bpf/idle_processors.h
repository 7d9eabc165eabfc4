// What the eBPF program and its reader share: one of these for each processor, in a map that the reader has mapped.
// Read by C and C++.
#pragma once

#include <linux/types.h>

// A line for each processor: they switch independently.
struct idle_processor {
  __u64 idle_since;  // CLOCK_MONOTONIC nanoseconds; 0: busy (or not seen to switch yet).
  __u64 idle_ns;     // Time idle before that, since the program was attached.
  __u64 unused[6];
};
