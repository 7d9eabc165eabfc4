#include "lrpc/sandbox.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "landlock.h"
#include "lrpc/detail/sandbox/filter.h"
#include "lrpc/detail/sandbox/threads.h"
#include "lrpc/detail/shim/system/processor.h"
#include "system_calls.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(LRPC_COUNTING_ENDS)  // the last: coverage
#define LRPC_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define LRPC_SANITIZED 1
#endif
#endif

namespace lrpc::sandbox {
namespace {

#ifdef LRPC_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
constexpr const char* kNotWithSanitizer = "not in a build whose runtime (a sanitizer, coverage) opens files";

bool has(const std::vector<Group>& groups, Group group) { return std::ranges::find(groups, group) != groups.end(); }

/// `not_alone`: why it is unknown whether other threads keep their capabilities; empty if there are no other threads.
Part give_up_privileges(const Options& options, const std::string& not_alone) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return {false, system_error("PR_SET_NO_NEW_PRIVS", errno).text};
  if (!options.keep_capabilities) return {true, "none can be gained"};
  if (auto dropped = drop_capabilities(*options.keep_capabilities); !dropped) return {false, dropped.error().message()};
  if (!not_alone.empty()) return {false, not_alone};
  return {true, *options.keep_capabilities == 0 ? "no capabilities, none can be gained"
                                                : "few capabilities, none can be gained"};
}

Part hide_memory() {
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0) return {true, "other processes of its user cannot read it"};
  return {false, system_error("PR_SET_DUMPABLE", errno).text};
}

/// Installs the filter on all existing threads; new threads inherit it.
Part install(const std::vector<sock_filter>& filter, const Options& options) {
  const sock_fprog program{static_cast<unsigned short>(filter.size()), const_cast<sock_filter*>(filter.data())};
  const long result = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
  if (result == 0) {
    return {true,
            options.kill ? "all but those on the list end the process" : "all but those on the list fail with EPERM"};
  }
  if (result > 0) return {false, "thread " + std::to_string(result) + " has a filter of its own"};
  const bool refused = errno == ENOSYS || errno == EINVAL || errno == EPERM || errno == EACCES;
  const char* const what = refused ? "this kernel, or a filter that is in place, allows no filters" : "seccomp";
  return {false, system_error(what, errno).text};
}

std::string line(const char* what, const Part& part) {
  return std::string(what) + (part.holds ? ": " : " NOT HELD: ") + part.text;
}

}  // namespace

std::string Report::text() const {
  return line("privileges", privileges) + "; " + line("memory", memory) + "; " + line("files", files) + "; " +
         line("TCP", tcp) + "; " + line("other processes", others) + "; " + line("system calls", system_calls);
}

Result<Report> enter(const Options& chosen) {
  Options options = chosen;
  if (has(options.groups, Group::read_files) || has(options.groups, Group::write_files))
    options.read_only.emplace_back("/sys/devices/system/cpu/online");  // for the C library's number of processors
  auto filter = make_filter({.otherwise = options.kill ? Otherwise::kill : Otherwise::error,
                             .rules = rules_of(options.groups),
                             .allow = options.allow});
  if (!filter) return filter.error();
  // Why it is unknown whether there are other threads; empty if there are none, or if nothing depends on that.
  std::string not_alone;
  if ((options.landlock || options.keep_capabilities) && !kSanitized) {  // a sanitizer's runtime has its own threads
    if (const Status alone = check_only_thread(); !alone) {
      if (options.required || alone.code() != Errc::not_supported)
        return Error{alone.code(), std::string(options.landlock ? "Landlock holds" : "capabilities are given up") +
                                       " for one thread and those that it starts, and " + alone.error().message() +
                                       ": shut it in before the first export, import or thread"};
      not_alone = alone.error().message();
    }
  }
  // Now: tzset() reads files, which the sandbox might refuse later; and the first use of the ticks measures their rate.
  (void)shim::ticks_per_microsecond();
  ::tzset();

  Report report;
  report.privileges = give_up_privileges(options, not_alone);
  report.memory = hide_memory();
  if (kSanitized) {
    report.files = report.tcp = report.others = report.system_calls = {false, kNotWithSanitizer};
  } else {
    // Landlock before the filter, so that the filter need not allow Landlock's system calls.
    report.files = report.tcp = report.others = {false, "not wanted"};
    if (options.landlock) restrict_by_landlock(options, report);
    if (options.landlock && !not_alone.empty()) report.files = report.tcp = report.others = {false, not_alone};
    report.system_calls = install(*filter, options);
  }
  // Without options.landlock, `required` does not demand Landlock.
  Report wanted = report;
  if (!options.landlock) wanted.files.holds = wanted.tcp.holds = true;
  const bool ports = !has(options.groups, Group::streams) || wanted.tcp.holds;
  if (options.required && !(wanted.complete() && ports))
    return Error{Errc::not_supported, "the sandbox is not whole: " + report.text()};
  return report;
}

}  // namespace lrpc::sandbox
