#include "lrpc/detail/shim/system/thread.h"

#include <link.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <iterator>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>

#include "lrpc/detail/shim/system/cancellation.h"

namespace lrpc::shim {
namespace {

/// A thread names itself: to name another one means to write a file in /proc, which a sandbox may forbid.
struct NamedBody {
  std::array<char, 16> name{};  ///< A copy: the caller's may be gone when the thread begins.
  Thread::Body body = nullptr;
  void* argument = nullptr;
};

std::size_t whole_pages(std::size_t size) noexcept {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size / page * page + (size % page != 0 ? page : 0);
}

/// Bytes of the thread-local variables of the program and its libraries, which glibc takes from each thread's stack.
constinit std::size_t thread_locals = 0;

/// Before other initialisers, which may start threads. dl_iterate_phdr(3) takes a lock of the dynamic linker, which
/// fork(2) does not free in the child: a child forked while another thread holds it would wait for ever when it counts.
[[gnu::constructor(101)]] void count_thread_locals() noexcept {
  const auto add = [](dl_phdr_info* object, std::size_t, void* to) {
    for (const auto& segment : std::span(object->dlpi_phdr, object->dlpi_phnum))
      if (segment.p_type == PT_TLS) *static_cast<std::size_t*>(to) += segment.p_memsz + segment.p_align;
    return 0;
  };
  (void)dl_iterate_phdr(add, &thread_locals);
}

/// All but those that a thread's own faults raise: if one of these is blocked, the process ends without a call of the
/// program's handler.
sigset_t signals_to_block() noexcept {
  sigset_t sent;
  sigfillset(&sent);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&sent, fault);
  return sent;
}

void* run_named(void* argument) {
  const NoCancellation never;
  const std::unique_ptr<NamedBody> given(static_cast<NamedBody*>(argument));
  pthread_setname_np(pthread_self(), given->name.data());
  return given->body(given->argument);
}

}  // namespace

Status schedule_this_thread(const Scheduling& scheduling) {
  static constexpr int kPolicies[] = {SCHED_OTHER, SCHED_BATCH, SCHED_IDLE, SCHED_FIFO, SCHED_RR};
  const auto policy = static_cast<std::size_t>(scheduling.policy);
  if (policy >= std::size(kPolicies)) return Error{Errc::invalid_argument, "there is no such scheduling policy"};
  // setpriority(2) would take the nearest one.
  const bool nice = policy < 2 ? scheduling.nice >= -20 && scheduling.nice <= 19 : scheduling.nice == 0;
  if (!nice) {
    return Error{Errc::invalid_argument, "Scheduling::nice is " + std::to_string(scheduling.nice) +
                                             ": -20 to 19 with normal and batch, else 0"};
  }
  sched_param parameters{};
  parameters.sched_priority = scheduling.priority;
  int err = 0;
  if (sched_setscheduler(0, kPolicies[policy], &parameters) != 0) err = errno;
  // On Linux niceness belongs to a thread.
  if (err == 0 && policy < 2 && setpriority(PRIO_PROCESS, 0, scheduling.nice) != 0) err = errno;
  if (err == EPERM || err == EACCES) {
    return Error{Errc::not_permitted,
                 "this process may not schedule a thread so (RLIMIT_RTPRIO, RLIMIT_NICE, CAP_SYS_NICE)"};
  }
  if (err == EINVAL) {
    return Error{Errc::invalid_argument, "Scheduling::priority is " + std::to_string(scheduling.priority) +
                                             ": 1 to 99 with fifo and round_robin, else 0"};
  }
  if (err != 0) return system_error("sched_setscheduler", err);
  return {};
}

Status can_schedule(const Scheduling& scheduling) {
  struct Attempt {
    const Scheduling& scheduling;
    Status outcome;
    void run() { outcome = schedule_this_thread(scheduling); }
  } attempt{scheduling, {}};
  Thread thread;
  if (Status started = thread.start<&Attempt::run>({.name = "lrpc-probe"}, &attempt); !started) return started;
  thread.join();
  return attempt.outcome;
}

bool is_realtime(int policy) noexcept {
  policy &= ~SCHED_RESET_ON_FORK;  // RealtimeKit, for one, sets it
  return policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
}

Status Thread::start(const Options& options, Body body, void* argument) {
  std::unique_ptr<NamedBody> named(new (std::nothrow) NamedBody{.body = body, .argument = argument});
  if (named == nullptr) return system_error("pthread_create", ENOMEM);
  std::string_view(options.name).copy(named->name.data(), named->name.size() - 1);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  int err = 0;
  if (options.stack_size != 0) {
    const auto least = static_cast<std::size_t>(PTHREAD_STACK_MIN);
    constexpr std::size_t kMost = ~std::size_t{0} / 2;  // no thread can have it, and the sum does not wrap
    const std::size_t size = std::clamp(options.stack_size, least, kMost) + thread_locals;
    err = pthread_attr_setstacksize(&attributes, whole_pages(size));
  }
  if (err == 0 && options.guard_size != 0)
    err = pthread_attr_setguardsize(&attributes, whole_pages(options.guard_size));
  if (err == 0) {
    // A thread inherits the mask.
    const sigset_t sent = signals_to_block();
    sigset_t before;
    pthread_sigmask(SIG_SETMASK, &sent, &before);
    err = pthread_create(&thread_, &attributes, &run_named, named.get());
    if (err == 0) (void)named.release();  // the thread's
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  pthread_attr_destroy(&attributes);
  if (err != 0) return system_error("pthread_create", err);
  running_ = true;
  return {};
}

void Thread::join() noexcept {
  if (!running_) return;
  const NoCancellation never;  // pthread_join(3) is a cancellation point
  pthread_join(thread_, nullptr);
  running_ = false;
}

void Thread::detach() noexcept {
  pthread_detach(thread_);
  running_ = false;
}

}  // namespace lrpc::shim
