// lrpcd: the nameserver as a daemon. Everything it does is in lrpc::nameserver; here are its options and its signals.
#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include "daemon_limits.h"
#include "daemon_policy.h"
#include "daemon_sandbox.h"
#include "loop/listen_socket.h"
#include "lrpc/command_line.h"
#include "lrpc/daemon.h"
#include "lrpc/detail/nameserver/policy_file.h"
#include "lrpc/detail/shim/system/daemon_descriptors.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/nameserver.h"
#include "lrpc/reserve.h"
#include "policy_check.h"
#include "processor_watch.h"

namespace lrpc::nameserver {
namespace {

struct CommandLine {
  NameserverOptions options;
  ExportRule export_rule = ExportRule::own_user;
  std::string policy;  ///< Empty: there is none.
  bool policy_must_exist = true;
  PolicyQuestion question;
  std::string mode;
  long long bind_timeout_ms = 5000;
  std::string allocator = "auto";
  bool ebpf = true;
  daemon::Options daemon;
};

void declare(command_line::Program& program, CommandLine& line) {
  program.version("lrpcd " LRPC_VERSION);
  // An empty value most often comes from a variable that is not set: refuse it instead of using a default.
  const auto text = [&](const char* name, const char* what, std::string& value, const std::string& description) {
    return program.option(name, value, description).help_text(what).not_empty();
  };
  text("--socket", "PATH", line.options.socket_path,
       std::string("Listen here (default: ") + shim::kWhereSocketsAre + ")");
  text("--mode", "OCTAL", line.mode, "Permissions of the socket (default: 666 for /run/lrpc/lrpcd.sock, else 600)");
  program
      .choice("--backend", line.options.backend,
              "What the event loop runs on; auto (the default) is io_uring where it can be had, else epoll",
              {{"auto", Backend::automatic}, {"io_uring", Backend::io_uring}, {"epoll", Backend::epoll}})
      .help_text("auto|io_uring|epoll");
  program
      .choice(
          "--allow-export", line.export_rule,
          "Who may export where the policy does not say: own (root and the daemon's own user, the default) or anyone "
          "who may connect",
          {{"own", ExportRule::own_user}, {"anyone", ExportRule::anyone}})
      .help_text("own|anyone");
  text("--policy", "FILE", line.policy,
       "A file that says who may export and import what; SIGHUP reads it again (default: /etc/lrpc/policy.toml if "
       "it exists and the socket is /run/lrpc/lrpcd.sock)");
  const auto check = text("--check-policy", "FILE", line.question.file,
                          "Say what is wrong with this policy (status 1), or what it says, and exit");
  text("--daemon-user", "USER", line.question.daemon_user,
       "With --check-policy: the user that lrpcd will run as, whom the policy's \"own\" means (default: you)")
      .needs(check);
  text("--as", "USER", line.question.as,
       "With --check-policy: the user that --import and --export ask about (default: you)")
      .needs(check);
  program
      .option("--import", line.question.imports,
              "With --check-policy: say whether the user may import this name (status 2 if not), and why")
      .help_text("NAME ...")
      .needs(check);
  program
      .option("--export", line.question.exports,
              "With --check-policy: say whether the user may export this name (status 2 if not), and why")
      .help_text("NAME ...")
      .needs(check);
  program
      .option("--max-region-bytes", line.options.limits.max_region_bytes,
              "The largest region of a binding (default: 1073741824)")
      .help_text("N")
      .positive();
  program
      .option("--bind-timeout-ms", line.bind_timeout_ms,
              "How long a server may take to answer an import: 1 to 3600000 (default: 5000)")
      .help_text("N")
      .in_range(1, 3'600'000);
  program
      .option("--allocator", line.allocator,
              "Grant pollers to the most active servers when more are active than can poll (auto, the default), at all "
              "times, or never")
      .one_of({"auto", "always", "off"})
      .help_text("auto|always|off");
  program
      .choice("--ebpf", line.ebpf,
              "Learn which processors are idle by eBPF where that can be had (auto, the default), or "
              "only from /proc",
              {{"auto", true}, {"off", false}})
      .help_text("auto|off");
  daemon::declare(program, line.daemon, "once it listens", "listening");
}

void write_log(LogLevel level, std::string_view text) {
  const auto severity = level == LogLevel::debug  ? spdlog::level::debug
                        : level == LogLevel::info ? spdlog::level::info
                                                  : spdlog::level::warn;
  spdlog::log(severity, "{}", text);
}

/// Takes the load from /proc, and the processors' idle time from the scheduler if eBPF is available.
void watch_processors(NameserverOptions& options) {
  auto watch = shim::ProcessorWatch::attach();
  auto load = proc_machine_load();
  if (!watch || !load) {
    spdlog::info("idle processors are looked up in /proc: {}", (watch ? load.error() : watch.error()).message());
    return;
  }
  options.machine_load = [watch = std::shared_ptr(*std::move(watch)), load = *std::move(load)] {
    auto now = load();
    const double idle = watch->idle();
    if (now) now->idle = std::min(idle, static_cast<double>(now->processors));
    return now;
  };
  spdlog::info("idle processors are seen by eBPF");
}

std::string socket_of(const CommandLine& line) {
  return line.options.socket_path.empty() ? shim::nameserver_sockets().front() : line.options.socket_path;
}

/// A daemon at the system's socket uses the system's policy.
void find_policy(CommandLine& line) {
  if (!line.policy.empty() || socket_of(line) != shim::kSystemSocket) return;
  line.policy = kSystemPolicy;
  line.policy_must_exist = false;
}

int complain(const std::string& what) {
  std::fprintf(stderr, "lrpcd: %s\n", what.c_str());
  return 1;
}

int serve(CommandLine& line) {
  // First, so that nobody can read the nonces of others' bindings out of this process.
  if (auto started = daemon::start("lrpcd", line.daemon); !started) return complain(started.error().message());
  shim::raise_descriptor_limit();  // each connection takes a descriptor or two
  find_policy(line);
  auto policy = DaemonPolicy::open(line.policy, line.policy_must_exist, line.export_rule);  // before there are threads
  if (!policy) return complain("the policy is not right:\n" + policy.error().message());
  const UniqueFd signals = take_signals({SIGTERM, SIGINT});
  if (!signals) return complain("signalfd failed");
  line.options.stop_fd = signals.get();
  line.options.bind_timeout = std::chrono::milliseconds(line.bind_timeout_ms);
  line.options.log = write_log;
  const std::uint64_t descriptors = shim::descriptor_limit();
  line.options.limits = within_descriptors(line.options.limits, descriptors);
  const std::string few = few_descriptors(line.options.limits, descriptors);
  if (!few.empty()) spdlog::warn("{}", few);
  policy->apply_to(line.options);
  line.options.short_of_memory = &reserve::short_of_memory;
  if (line.allocator == "off") line.options.allocator_tick = kNoLimit;
  line.options.allocator_rules_always = line.allocator == "always";
  if (line.allocator != "off" && line.ebpf) watch_processors(line.options);

  auto nameserver = Nameserver::open(line.options);
  if (nameserver.code() == Errc::call_cancelled) return 0;
  if (!nameserver) {
    // The user has named no socket, and may not listen at the system's.
    const bool elsewhere = nameserver.code() == Errc::system_error && line.options.socket_path.empty() &&
                           socket_of(line) == shim::kSystemSocket;
    return complain(nameserver.error().message() +
                    (elsewhere ? "; name a socket of your own: --socket, or LRPC_SOCKET for all programs" : ""));
  }
  policy->change_policy_of(**nameserver);
  // From here on: no files but what sandbox_of_daemon() names, no processes, no sockets of its own making.
  const auto sandbox = sandbox_of_daemon((*nameserver)->socket_path());
  if (auto shut = daemon::shut_in(line.daemon, sandbox); !shut) return complain(shut.error().message());
  std::printf("lrpcd %s listens on %s (%.*s)\n", LRPC_VERSION, (*nameserver)->socket_path().c_str(),
              static_cast<int>((*nameserver)->backend().size()), (*nameserver)->backend().data());
  std::fflush(stdout);
  if (auto told = daemon::tell_ready(line.daemon); !told) return complain(told.error().message());
  if (auto ended = (*nameserver)->run(); !ended) return complain(ended.error().message());
  return 0;
}

}  // namespace
}  // namespace lrpc::nameserver

int main(int argc, char** argv) {
  using namespace lrpc::nameserver;
  lrpc::command_line::Program program(
      "The nameserver of lrpc: introduces domains that export interfaces to those that import them.", "lrpcd");
  CommandLine line;
  declare(program, line);
  if (const auto status = program.parse(argc, argv)) return *status;
  if (!line.mode.empty()) {
    const bool octal = line.mode.find_first_not_of("01234567") == std::string::npos && line.mode.size() <= 4;
    const unsigned long mode = octal ? std::stoul(line.mode, nullptr, 8) : 010000;
    if (mode > 0777) return complain("--mode: '" + line.mode + "' is not an octal mode such as 660");
    line.options.mode = static_cast<mode_t>(mode);
  }
  try {
    if (line.question.file.empty()) return serve(line);
    line.question.export_rule = line.export_rule;
    return program.printed(check_policy(line.question));
  } catch (const std::exception& error) {
    return complain(error.what());
  }
}
