#include "lrpc/daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <future>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

#include "log_stream.h"
#include "lrpc/detail/shim/system/daemon_descriptors.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::daemon {
namespace {

/// For signals, while something else is waited for.
constexpr std::chrono::milliseconds kBetweenLooks{50};

sigset_t end_signals() {
  sigset_t ends;
  ::sigemptyset(&ends);
  for (const int number : {SIGTERM, SIGINT}) ::sigaddset(&ends, number);
  return ends;
}

constinit LogStream standard_error(STDERR_FILENO);

class LogSink final : public spdlog::sinks::base_sink<std::mutex> {
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    standard_error.write({line.data(), line.size()});
  }
  void flush_() override {}
};

}  // namespace

void declare(const command_line::Program& program, Options& options, const std::string& shuts_in,
             const std::string& ready) {
  program
      .option("--sandbox", options.sandbox,
              "Enter the sandbox " + shuts_in +
                  ": no (off), as far as this kernel can (best-effort, the default), or fail (required)")
      .one_of({"off", "best-effort", "required"})
      .help_text("off|best-effort|required");
  program.option("--log-level", options.log_level, "What to log on the standard error (default: info)")
      .one_of({"debug", "info", "warning", "off"})
      .help_text("debug|info|warning|off");
  // Not a standard stream: a later connection would get its number once it has been closed, and read the log.
  program
      .option("--ready-fd", options.ready_fd,
              "Write one byte to this descriptor (over 2) when " + ready + ", and close it")
      .in_range(STDERR_FILENO + 1, std::numeric_limits<int>::max())
      .help_text("N");
}

Status start(const std::string& name, const Options& options) {
  // Later the number may be that of a descriptor of the daemon's own.
  if (options.ready_fd >= 0 && ::fcntl(options.ready_fd, F_GETFD) < 0)
    return Error{Errc::invalid_argument, "--ready-fd: descriptor " + std::to_string(options.ready_fd) + " is not open"};
  shim::open_standard_streams();
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  shim::close_inherited(options.ready_fd);
  standard_error.open_own();
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // RLIMIT_FSIZE holds for its log, and for each region that it makes
  auto logger = std::make_shared<spdlog::logger>(name, std::make_shared<LogSink>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z " + name + " %l: %v");
  logger->set_level(spdlog::level::from_str(options.log_level));
  logger->set_error_handler([](const std::string&) { standard_error.leave_out(); });  // spdlog's own one may wait
  spdlog::set_default_logger(std::move(logger));
  return {};
}

void write_line(std::string_view line) noexcept {
  try {
    standard_error.write(std::string(line) + '\n');
  } catch (const std::bad_alloc&) {
    standard_error.leave_out();
  }
}

bool told_to_end(std::chrono::milliseconds longest) {
  const sigset_t ends = end_signals();
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(longest);
  const timespec wait{whole.count(), std::chrono::nanoseconds(longest - whole).count()};
  if (::sigtimedwait(&ends, nullptr, &wait) < 0) return false;
  spdlog::info("stops");
  return true;
}

Status do_unless_told_to_end(const std::function<Status()>& work) {
  std::future<Status> done;
  try {
    done = std::async(std::launch::async, work);
  } catch (const std::system_error& error) {
    return system_error("pthread_create", error.code().value());
  }
  while (done.wait_for(kBetweenLooks) != std::future_status::ready)
    if (told_to_end({})) std::_Exit(0);
  return done.get();
}

void let_signals_kill() {
  ::signal(SIGTERM, SIG_DFL);
  ::signal(SIGINT, SIG_DFL);
  const sigset_t ends = end_signals();
  ::pthread_sigmask(SIG_UNBLOCK, &ends, nullptr);
}

Status shut_in(const Options& options, sandbox::Options sandbox) {
  std::optional<sandbox::Report> report;
  if (options.sandbox != "off") {
    sandbox.required = options.sandbox == "required";
    auto entered = sandbox::enter(sandbox);
    if (!entered) return entered.error();
    report = *std::move(entered);
  }
  log_sandbox(report);
  return {};
}

void log_sandbox(const std::optional<sandbox::Report>& report) {
  if (!report) return spdlog::warn("sandbox: off");
  spdlog::log(report->complete() ? spdlog::level::info : spdlog::level::warn, "sandbox: {}", report->text());
}

Status tell_ready(const Options& options) {
  if (options.ready_fd < 0) return {};
  const UniqueFd ready(options.ready_fd);
  if (::write(ready.get(), "\n", 1) == 1) return {};
  return Error{Errc::system_error, "--ready-fd: cannot write to descriptor " + std::to_string(options.ready_fd)};
}

}  // namespace lrpc::daemon
