// lrpc-directory: names across machines. Its options, its log, its signals, in the order of its life.
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "config.h"
#include "directory_sandbox.h"
#include "lookup_service.h"
#include "lrpc/command_line.h"
#include "lrpc/sandbox.h"
#include "lrpc/server.h"
#include "lrpc/shim/system/daemon_descriptors.h"
#include "publisher.h"

namespace {

using lrpc::directory::Config;

struct CommandLine {
  std::string config = lrpc::directory::kSystemConfig;
  std::string nameserver;
  bool check = false;
  std::string sandbox = "best-effort";
  std::string log_level = "info";
  int ready_fd = -1;
};

void declare(lrpc::command_line::Program& program, CommandLine& line) {
  program.version("lrpc-directory " LRPC_VERSION);
  program.option("--config", line.config, "The configuration file").help_text("FILE").show_default();
  program.option("--nameserver", line.nameserver, "Socket of lrpcd (default: where every program looks)")
      .help_text("SOCKET");
  program.flag("--check", line.check, "Say what is wrong with the configuration, or what it says, and exit");
  program
      .option("--sandbox", line.sandbox,
              "Shut itself in before it connects: as far as this kernel can (best-effort), whole or not at all, or not")
      .one_of({"off", "best-effort", "required"})
      .help_text("off|best-effort|required");
  program.option("--log-level", line.log_level, "What to log on the standard error")
      .one_of({"debug", "info", "warning", "off"});
  program.option("--ready-fd", line.ready_fd, "Write one byte to this descriptor when ready, and close it")
      .non_negative();
}

int complain(const std::string& what) {
  std::fprintf(stderr, "lrpc-directory: %s\n", what.c_str());
  return 1;
}

void open_log(const std::string& level) {
  auto logger = spdlog::stderr_logger_mt("lrpc-directory");
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z lrpc-directory %l: %v");
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::debug);
  spdlog::set_default_logger(logger);
}

/// From here on it can reach etcd's ports and Unix sockets, and read what TLS and the resolver need.
lrpc::Status shut_in(const CommandLine& line, const Config& config) {
  if (line.sandbox == "off") {
    spdlog::warn("sandbox: off");
    return lrpc::sandbox::drop_capabilities(0);
  }
  auto options = lrpc::directory::sandbox_of_directory(config);
  options.required = line.sandbox == "required";
  auto entered = lrpc::sandbox::enter(options);
  if (!entered) return entered.error();
  spdlog::log(entered->complete() ? spdlog::level::info : spdlog::level::warn, "sandbox: {}", entered->text());
  return {};
}

std::string endpoints_of(const Config& config) {
  std::string text;
  for (const std::string& one : config.server.endpoints) text.append(text.empty() ? "" : ", ").append(one);
  return text;
}

int check(const Config& config) {
  if (!config.etcd) return std::puts("directory = \"local\": names stay on this machine"), 0;
  std::printf("directory = \"etcd\": %s, keys below %s, a lease of %lld s, %s, %s\n", endpoints_of(config).c_str(),
              config.prefix.c_str(), static_cast<long long>(config.lease.count()),
              config.server.user.empty() ? "no user" : ("user " + config.server.user).c_str(),
              config.server.tls.certificate.empty() ? "no certificate of its own" : "with a certificate");
  if (const auto risk = lrpc::directory::risk_of(config)) std::printf("warning: %s\n", risk->c_str());
  return 0;
}

/// Until a signal ends it. What has been made goes in the reverse order: first the lookups, then the names.
int run(const CommandLine& line, const Config& config, const sigset_t& ends) {
  lrpc::directory::Etcd for_lookups(config.server);
  lrpc::directory::Etcd etcd(
      config.server);  // connections of its own: lookups do not keep the lease from being kept alive
  lrpc::directory::PublisherOptions publishing;
  publishing.nameserver = line.nameserver;
  publishing.prefix = config.prefix;
  publishing.policy.ttl = config.lease;
  const lrpc::directory::Log log = [](lrpc::directory::Severity severity, const std::string& text) {
    spdlog::log(severity == lrpc::directory::Severity::warning ? spdlog::level::warn : spdlog::level::info, "{}", text);
  };
  publishing.log = log;
  lrpc::directory::Publisher publisher(etcd, std::move(publishing));
  lrpc::directory::LookupService lookups(for_lookups,
                                         {config.prefix, config.oldest, [&] { return publisher.own(); },
                                          [&](const std::string& name) { return publisher.own_name(name); }, log});
  lrpc::Server server({.nameserver = line.nameserver, .max_estacks = 128});
  auto exported = lrpc::directory::Directory::export_to(server, std::string(lrpc::shim::kDirectoryName), lookups);
  if (!exported) return complain(exported.error().message());
  std::printf("lrpc-directory %s uses etcd at %s\n", LRPC_VERSION, endpoints_of(config).c_str());
  std::fflush(stdout);
  if (line.ready_fd >= 0) {
    const lrpc::UniqueFd ready(line.ready_fd);
    if (::write(ready.get(), "\n", 1) != 1) return complain("--ready-fd: cannot write to it");
  }
  for (int number = 0; ::sigwait(&ends, &number) != 0;) continue;
  spdlog::info("stops");
  lookups.stop();
  return 0;
}

int serve(const CommandLine& line, const Config& config) {
  // Nobody may read the password out of this process, or take its descriptors.
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  lrpc::shim::close_inherited(line.ready_fd);
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t ends;
  ::sigemptyset(&ends);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&ends, number);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  open_log(line.log_level);
  if (const auto risk = lrpc::directory::risk_of(config)) spdlog::warn("{}", *risk);
  if (auto started = lrpc::directory::start_http(); !started) return complain(started.error().message());
  if (auto shut = shut_in(line, config); !shut) return complain(shut.error().message());
  return run(line, config, ends);
}

}  // namespace

int main(int argc, char** argv) {
  lrpc::command_line::Program program(
      "The directory of lrpc: publishes this machine's names in etcd and looks up those of other machines.",
      "lrpc-directory");
  CommandLine line;
  declare(program, line);
  if (const auto status = program.parse(argc, argv)) return *status;
  try {
    const auto config = lrpc::directory::read_config(line.config);
    if (!config) return complain(config.error().message());
    if (line.check) return check(*config);
    if (!config->etcd)
      return complain(line.config + " does not say directory = \"etcd\": names stay on this machine, nothing to do");
    return serve(line, *config);
  } catch (const std::exception& error) {
    return complain(error.what());
  }
}
