// lrpc-directory: names across machines. Its options and its signals, in the order of its life.
#include <signal.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <exception>
#include <string>
#include <utility>

#include "config.h"
#include "directory_sandbox.h"
#include "lookup/lookup_service.h"
#include "lrpc/command_line.h"
#include "lrpc/daemon.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/system/daemon_descriptors.h"
#include "lrpc/sandbox.h"
#include "lrpc/server.h"
#include "publish/publisher.h"
#include "serving.h"

namespace lrpc::directory {
namespace {

struct CommandLine {
  std::string config = kSystemConfig;
  std::string nameserver;
  bool check = false;
  daemon::Options common;
};

void declare(command_line::Program& program, CommandLine& line) {
  program.version("lrpc-directory " LRPC_VERSION);
  program.option("--config", line.config, "The configuration file (default: " + line.config + ")")
      .help_text("FILE")
      .not_empty();
  program.option("--nameserver", line.nameserver, "Socket of lrpcd (default: where every program looks)")
      .help_text("SOCKET")
      .not_empty();
  program.flag("--check", line.check, "Say what is wrong with the configuration, or what it says, and exit");
  daemon::declare(program, line.common, "before it connects", "ready");
}

int complain(const std::string& what) {
  std::fprintf(stderr, "lrpc-directory: %s\n", what.c_str());
  return 1;
}

/// Checks that the TLS files can still be read without capabilities: root may have read them by a capability.
Status still_reads(const Config& config) {
  Status reads = check_tls_files(config);
  if (reads) return reads;
  return Error{reads.code(), reads.error().message() +
                                 " (without any capability, which lrpc-directory gives up: its user or one of "
                                 "its groups must be able to read this file)"};
}

/// From here on it can reach only etcd's ports and Unix sockets, and read only what TLS and the resolver need.
Status shut_in(const CommandLine& line, const Config& config) {
  auto shut = daemon::shut_in(line.common, sandbox_of_directory(config));
  if (line.common.sandbox == "off") shut = sandbox::drop_capabilities(0);
  return shut ? still_reads(config) : shut;
}

std::string endpoints_of(const Config& config) {
  std::string text;
  for (const std::string& one : config.server.endpoints) text.append(text.empty() ? "" : ", ").append(one);
  return text;
}

int check(const Config& config) {
  if (!config.etcd) return std::puts("directory = \"local\": names stay on this machine"), 0;
  if (auto dropped = sandbox::drop_capabilities(0); !dropped) return complain(dropped.error().message());
  if (auto reads = still_reads(config); !reads) return complain(reads.error().message());
  std::printf("directory = \"etcd\": %s, keys below %s, a lease of %lld s, %s, %s\n", endpoints_of(config).c_str(),
              config.prefix.c_str(), static_cast<long long>(config.lease.count()),
              config.server.user.empty() ? "no user" : ("user " + config.server.user).c_str(),
              config.server.tls.certificate.empty() ? "no certificate of its own" : "with a certificate");
  if (const auto risk = risk_of(config)) std::printf("warning: %s\n", risk->c_str());
  return 0;
}

/// Runs until a signal ends it. Destroys in reverse order: first the lookups, then the names.
int run(const CommandLine& line, const Config& config, const sigset_t& ends) {
  Etcd for_lookups(config.server);
  Etcd etcd(config.server);  // its own connections, so that lookups do not delay the keep-alives of the lease
  PublisherOptions publishing;
  const auto nameserver = shim::settled_nameserver(line.nameserver);
  if (!nameserver) return complain(nameserver.error().message());
  publishing.nameserver = *nameserver;
  publishing.prefix = config.prefix;
  publishing.policy.ttl = config.lease;
  const Log log = [](Severity severity, const std::string& text) {
    spdlog::log(severity == Severity::warning ? spdlog::level::warn : spdlog::level::info, "{}", text);
  };
  publishing.log = log;
  Publisher publisher(etcd, std::move(publishing));
  LookupService lookups(for_lookups, {config.prefix, config.oldest, [&] { return publisher.own(); },
                                      [&](const std::string& name) { return publisher.own_name(name); }, log});
  const std::uint64_t descriptors = shim::descriptor_limit();
  ServerOptions serving = serving_options(descriptors);
  if (const std::string few = few_imports(serving, descriptors); !few.empty()) spdlog::warn("{}", few);
  serving.nameserver = *nameserver;
  Server server(std::move(serving));
  const auto export_it = [&]() -> Status {
    auto exported = Directory::export_to(server, std::string(shim::kDirectoryName), lookups);
    return exported ? Status() : exported.error();
  };
  if (auto exported = daemon::do_unless_told_to_end(export_it); !exported) return complain(exported.error().message());
  // Not before this is certainly the machine's only lrpc-directory: a second one would take over the names, and remove
  // them with its lease.
  publisher.begin();
  std::printf("lrpc-directory %s uses etcd at %s\n", LRPC_VERSION, endpoints_of(config).c_str());
  std::fflush(stdout);
  if (auto told = daemon::tell_ready(line.common); !told) return complain(told.error().message());
  for (int number = 0; ::sigwait(&ends, &number) != 0;) continue;
  spdlog::info("stops");
  daemon::let_signals_kill();
  lookups.stop();
  return 0;
}

int serve(const CommandLine& line, const Config& config) {
  // Before anything else, so that nobody can read the password out of this process.
  if (auto ready = daemon::start("lrpc-directory", line.common); !ready) return complain(ready.error().message());
  shim::raise_descriptor_limit();  // each binding takes two
  sigset_t ends;
  ::sigemptyset(&ends);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&ends, number);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  if (const auto risk = risk_of(config)) spdlog::warn("{}", *risk);
  if (auto started = start_http(); !started) return complain(started.error().message());
  if (auto shut = shut_in(line, config); !shut) return complain(shut.error().message());
  return run(line, config, ends);
}

}  // namespace
}  // namespace lrpc::directory

int main(int argc, char** argv) {
  using namespace lrpc::directory;
  lrpc::command_line::Program program(
      "The directory of lrpc: publishes this machine's names in etcd and looks up those of other machines.",
      "lrpc-directory");
  CommandLine line;
  declare(program, line);
  if (const auto status = program.parse(argc, argv)) return *status;
  try {
    const auto config = read_config(line.config);
    if (!config) return complain(config.error().message());
    if (line.check) return program.printed(check(*config));
    if (!config->etcd)
      return complain(line.config + " does not say directory = \"etcd\": names stay on this machine, nothing to do");
    return serve(line, *config);
  } catch (const std::exception& error) {
    return complain(error.what());
  }
}
