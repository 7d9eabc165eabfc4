#include "lrpc/detail/sandbox/filter.h"

#include <fcntl.h>
#include <seccomp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <span>

#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::sandbox {
namespace {

using Context = std::unique_ptr<void, decltype(&seccomp_release)>;  // of a scmp_filter_ctx

std::uint32_t action_of(Otherwise otherwise) {
  switch (otherwise) {
    case Otherwise::trace: return SCMP_ACT_TRACE(0);
    case Otherwise::error: return SCMP_ACT_ERRNO(EPERM);
    case Otherwise::kill: break;
  }
  return SCMP_ACT_KILL_PROCESS;
}

scmp_arg_cmp comparison_of(const Condition& condition) {
  if (condition.at_most) return {condition.argument, SCMP_CMP_LE, condition.value, 0};
  if (condition.mask == ~std::uint64_t{0}) return {condition.argument, SCMP_CMP_EQ, condition.value, 0};
  return {condition.argument, SCMP_CMP_MASKED_EQ, condition.mask, condition.value};
}

Status add(const Context& context, std::uint32_t action, long number, std::span<const Condition> conditions) {
  std::vector<scmp_arg_cmp> comparisons;
  comparisons.reserve(conditions.size());
  for (const Condition& condition : conditions) comparisons.push_back(comparison_of(condition));
  const int err = seccomp_rule_add_array(context.get(), action, static_cast<int>(number),
                                         static_cast<unsigned>(comparisons.size()), comparisons.data());
  if (err == 0) return {};
  return system_error("a rule of the seccomp filter for " + name_of_system_call(number), -err);
}

Status add_all(const Context& context, const FilterOptions& options) {
  if (options.notifies_first) {
    if (Status added = add(context, SCMP_ACT_NOTIFY, *options.notifies_first, {}); !added) return added;
    (void)seccomp_syscall_priority(context.get(), static_cast<int>(*options.notifies_first), 255);
  }
  for (const Rule& rule : options.rules) {
    // Of two rules for one call, libseccomp keeps the first if that has no conditions.
    if (std::ranges::find(options.allow, rule.name) != options.allow.end()) continue;
    const int number = seccomp_syscall_resolve_name(rule.name.c_str());
    if (number < 0) continue;  // not on this architecture
    const std::uint32_t action =
        rule.fails_with == 0 ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(static_cast<unsigned>(rule.fails_with));
    if (Status added = add(context, action, number, rule.conditions); !added) return added;
  }
  for (const std::string& name : options.allow) {
    const int number = seccomp_syscall_resolve_name(name.c_str());
    if (number < 0) return Error{Errc::invalid_argument, "'" + name + "' is no system call of this processor"};
    if (Status added = add(context, SCMP_ACT_ALLOW, number, {}); !added) return added;
  }
  return {};
}

/// By a pipe: a file, even of memory, is subject to the limit of file sizes, and libseccomp takes a filter that was cut
/// short for a whole one.
Result<std::vector<sock_filter>> exported(const Context& context) {
  constexpr int kMost = BPF_MAXINSNS * sizeof(sock_filter);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return system_error("pipe2", errno);
  const UniqueFd out(ends[0]);
  const UniqueFd in(ends[1]);
  int room = fcntl(in.get(), F_GETPIPE_SZ);
  if (room < kMost) room = std::max(room, fcntl(in.get(), F_SETPIPE_SZ, kMost));  // refused to a user of many pipes
  if (const int err = seccomp_export_bpf(context.get(), in.get()); err != 0)
    return system_error("seccomp_export_bpf", -err);
  std::vector<sock_filter> filter(BPF_MAXINSNS + 1);
  const ssize_t size = read(out.get(), filter.data(), filter.size() * sizeof(sock_filter));
  if (size < 0) return system_error("reading the seccomp filter", errno);
  if (size > kMost || (room < kMost && size >= room))
    return Error{Errc::system_error, "the seccomp filter is too long for the kernel, or for a pipe of this user"};
  if (size == 0 || static_cast<std::size_t>(size) % sizeof(sock_filter) != 0)
    return Error{Errc::system_error, "seccomp_export_bpf wrote something else than a filter"};
  filter.resize(static_cast<std::size_t>(size) / sizeof(sock_filter));
  return filter;
}

}  // namespace

Result<std::vector<sock_filter>> make_filter(const FilterOptions& options) {
  const Context context(seccomp_init(action_of(options.otherwise)), &seccomp_release);
  if (context == nullptr) return Error{Errc::system_error, "libseccomp makes no filter"};
  // Other architectures number their system calls differently, so the rules do not apply to them.
  (void)seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  // Search a tree instead of a list, unless one call must be tested first.
  if (!options.notifies_first) (void)seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  if (Status added = add_all(context, options); !added) return added.error();

  return exported(context);
}

std::string name_of_system_call(long number) {
  const std::unique_ptr<char, decltype(&std::free)> name(
      seccomp_syscall_resolve_num_arch(seccomp_arch_native(), static_cast<int>(number)), &std::free);
  return name != nullptr ? name.get() : "system call " + std::to_string(number);
}

}  // namespace lrpc::sandbox
