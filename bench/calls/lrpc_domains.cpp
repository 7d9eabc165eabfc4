#include "lrpc_domains.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "async.server.h"
#include "lrpc/nameserver.h"
#include "lrpc/server.h"
#include "procedures.h"

namespace lrpc::bench {
namespace {

/// How a domain tells that it is ready, or why it never will be.
struct Readiness {
  enum State : std::uint32_t { starting = 0, ready, failed };
  std::atomic<std::uint32_t> state;
  char why[256];

  void fail(const Error& error) noexcept {
    std::snprintf(why, sizeof(why), "%s", error.message().c_str());
    state.store(failed, std::memory_order_release);
  }
};

/// Waits, in the bench's process, for a domain that it has just started.
Status await(Readiness& readiness, std::string_view who) {
  constexpr auto kLimit = std::chrono::minutes(4);
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < kLimit) {
    switch (readiness.state.load(std::memory_order_acquire)) {
      case Readiness::ready: return {};
      case Readiness::failed: return Error{Errc::peer_gone, std::string(who) + ": " + readiness.why};
      default: std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
  }
  return Error{Errc::timed_out, std::string(who) + " did not become ready within four minutes"};
}

[[noreturn]] void sleep_for_ever() {
  for (;;) ::pause();
}

struct AsyncProcedures {
  void Null(CallContext& /*context*/) noexcept {}
};

int run_nameserver(const nameserver::NameserverOptions& options, Readiness& readiness) {
  auto nameserver = nameserver::Nameserver::open(options);
  if (!nameserver) {
    readiness.fail(nameserver.error());
    return 1;
  }
  readiness.state.store(Readiness::ready, std::memory_order_release);
  return (*nameserver)->run() ? 0 : 1;
}

int run_server(const std::string& nameserver, ServerOptions options, Readiness& readiness) {
  Procedures procedures;
  options.nameserver = nameserver;
  Server server(options);
  if (auto exported = ::Bench::export_to(server, LrpcDomains::kExportedName, procedures); !exported) {
    readiness.fail(exported.error());
    return 1;
  }
  AsyncProcedures async;
  if (auto exported = ::AsyncBench::export_to(server, LrpcDomains::kAsyncName, async); !exported) {
    readiness.fail(exported.error());
    return 1;
  }
  readiness.state.store(Readiness::ready, std::memory_order_release);
  sleep_for_ever();
}

}  // namespace

Result<std::unique_ptr<PrivateNameserver>> PrivateNameserver::start(nameserver::NameserverOptions options) {
  std::unique_ptr<PrivateNameserver> self(new PrivateNameserver);
  if (!self->directory_.made()) return system_error("a directory for the nameserver's socket", errno);

  if (options.mode) ::chmod(self->directory_.file(".").c_str(), 0711);
  options.socket_path = self->socket_;

  auto readiness = Shared<Readiness>::create();
  if (!readiness) return readiness.error();
  auto process = Child::spawn("bench-lrpcd", own_seat(), [&] { return run_nameserver(options, **readiness); });
  if (!process) return process.error();
  self->process_ = std::move(*process);
  if (auto up = await(**readiness, "the nameserver"); !up) return up.error();
  return self;
}

PrivateNameserver::~PrivateNameserver() { process_.kill(); }  // before its directory goes

Result<Child> start_bench_server(const std::string& nameserver, const Seat& seat, const ServerOptions& options) {
  auto readiness = Shared<Readiness>::create();
  if (!readiness) return readiness.error();
  auto process = Child::spawn("bench-server", seat, [&] { return run_server(nameserver, options, **readiness); });
  if (!process) return process.error();
  if (auto up = await(**readiness, "the server"); !up) return up.error();
  return process;
}

Result<std::unique_ptr<LrpcDomains>> LrpcDomains::start(const Seat& server, const ServerOptions& options,
                                                        nameserver::NameserverOptions nameserver_options) {
  std::unique_ptr<LrpcDomains> self(new LrpcDomains);
  auto nameserver = PrivateNameserver::start(std::move(nameserver_options));
  if (!nameserver) return nameserver.error();
  self->nameserver_ = std::move(*nameserver);

  auto process = start_bench_server(self->nameserver_->socket(), server, options);
  if (!process) return process.error();
  self->server_ = std::move(*process);
  return self;
}

ImportOptions LrpcDomains::import_options(Gate gate) const {
  ImportOptions options;
  options.nameserver = nameserver_->socket();
  options.timeout = std::chrono::minutes(4);
  options.gate = gate;
  return options;
}

}  // namespace lrpc::bench
