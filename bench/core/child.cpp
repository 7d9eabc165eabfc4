#include "child.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

#include "interrupt.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/detail/shim/system/pidfd.h"
#include "ticks.h"

namespace lrpc::bench {

Result<Child> Child::spawn(std::string_view name, const Seat& seat, const std::function<int()>& body) {
  std::fflush(nullptr);  // otherwise the child would print our buffered output again
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return system_error("fork", errno);
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // the parent died before the line above took effect
    forget_interrupts_in_child();
    ::prctl(PR_SET_NAME, std::string(name).c_str());
    sit(seat);
    const int status = body();
    std::fflush(nullptr);
    ::_exit(status);
  }
  Child child;
  child.pid_ = pid;
  return child;
}

Result<Child> Child::spawn_leader(std::string_view name, const Seat& seat, const std::function<int()>& body) {
  auto child = spawn(name, seat, [&] {
    ::setpgid(0, 0);  // before the body starts anything
    return body();
  });
  if (!child) return child;
  ::setpgid(child->pid_, child->pid_);  // before anybody kills the group: either call may come first
  child->leads_ = true;
  return child;
}

Child::Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)), leads_(other.leads_) {}
Child& Child::operator=(Child&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(leads_, other.leads_);
  return *this;
}
Child::~Child() { kill(); }

void Child::kill() noexcept {
  if (pid_ < 0) return;
  ::kill(leads_ ? -pid_ : pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

Result<int> Child::wait(std::chrono::milliseconds limit) {
  const UniqueFd pidfd = shim::pidfd_of(pid_);
  if (!pidfd) return system_error("pidfd_open", errno);
  pollfd ended{pidfd.get(), POLLIN, 0};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  // A signal that ended an earlier wait is no longer pending, so it would not end this one: do not wait at all.
  const timespec timeout =
      interrupted() ? timespec{} : timespec{seconds.count(), std::chrono::nanoseconds(limit - seconds).count()};
  const sigset_t mask = mask_in_waits();
  if (::ppoll(&ended, 1, &timeout, &mask) != 1) {
    kill();
    if (interrupted()) return Error{Errc::call_aborted, "was interrupted"};
    return Error{Errc::timed_out, fmt::format("did not end within {} s and was killed", seconds.count())};
  }
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  if (WIFSIGNALED(status)) return Error{Errc::peer_gone, fmt::format("was killed by signal {}", WTERMSIG(status))};
  return WEXITSTATUS(status);
}

void wait_until_idle(pid_t pid, std::chrono::microseconds quiet, std::chrono::milliseconds limit) noexcept {
  clockid_t cpu_clock{};
  if (::clock_getcpuclockid(pid, &cpu_clock) != 0) return;
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t last = ~std::uint64_t{0};
  for (std::uint64_t used = clock_ns(cpu_clock); used != last && std::chrono::steady_clock::now() - start < limit;
       used = clock_ns(cpu_clock)) {
    last = used;
    std::this_thread::sleep_for(quiet);
  }
}

namespace detail {

Result<void*> map_shared(std::size_t size) {
  const UniqueFd fd(::memfd_create("lrpc-bench", MFD_CLOEXEC));
  if (!fd) return system_error("memfd_create", errno);
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return system_error("ftruncate", errno);
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd.get(), 0);
  if (memory == MAP_FAILED) return system_error("mmap", errno);
  return memory;
}
void unmap_shared(void* memory, std::size_t size) noexcept { ::munmap(memory, size); }

}  // namespace detail

void SharedError::set(const Error& error) noexcept {
  if (is_set_.load(std::memory_order_relaxed)) return;
  code_ = error.code;
  std::snprintf(text_, sizeof(text_), "%s", error.message().c_str());
  is_set_.store(true, std::memory_order_release);
}

Status SharedError::status() const {
  if (!is_set_.load(std::memory_order_acquire)) return {};
  return Error{code_, text_};
}

Status run_client(const Seat& seat, std::chrono::milliseconds limit, const std::function<Status()>& body) {
  auto failure = Shared<SharedError>::create();
  if (!failure) return failure.error();
  auto client = Child::spawn("bench-client", seat, [&] {
    if (const Status done = body(); !done) (*failure)->set(done.error());
    return 0;
  });
  if (!client) return client.error();
  const auto ended = client->wait(limit);
  if (!ended) return Error{ended.code(), "the client " + ended.error().message()};
  if (Status failed = (*failure)->status(); !failed) return failed;
  if (*ended != 0) return Error{Errc::call_failed, fmt::format("the client ended with status {}", *ended)};
  return {};
}

}  // namespace lrpc::bench
