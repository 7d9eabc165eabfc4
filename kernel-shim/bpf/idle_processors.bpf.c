// Which processors are idle, and for how long they have been, as the scheduler switches: for lrpcd's processor
// allocator, which otherwise samples /proc. Changes nothing; runs at every context switch of the machine, and does
// nothing at most.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "idle_processors.h"

// All that is used of the kernel's own type. Its place in the running kernel is filled in when the program is loaded.
struct task_struct {
  int pid;
} __attribute__((preserve_access_index));

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);  // set when it is loaded: one for each possible processor
  __type(key, __u32);
  __type(value, struct idle_processor);
} processors SEC(".maps");

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, _Bool preempt, struct task_struct *prev, struct task_struct *next) {
  const int was_idle = prev->pid == 0;  // each processor's idle task is number 0
  const int is_idle = next->pid == 0;
  if (was_idle == is_idle) return 0;
  __u32 number = bpf_get_smp_processor_id();
  struct idle_processor *processor = bpf_map_lookup_elem(&processors, &number);
  if (processor == 0) return 0;
  processor->state = state_after_switch(bpf_ktime_get_ns(), processor->state, is_idle);
  return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
