#include "lrpc_domains.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <functional>

#include "async.server.h"
#include "core/store.h"
#include "core/turns.h"
#include "lrpc/server.h"
#include "procedures.h"

namespace lrpc::bench {
namespace {

struct AsyncProcedures {
  void Null(CallContext& /*context*/) noexcept {}
};

int run_nameserver(const nameserver::NameserverOptions& options, TurnDesk& desk) {
  auto nameserver = nameserver::Nameserver::open(options);
  desk.end_turn(nameserver ? Status() : nameserver.error());
  return nameserver && (*nameserver)->run() ? 0 : 1;
}

/// Serves for ever; its later turns do nothing.
int run_server(const std::string& nameserver, ServerOptions options, TurnDesk& desk) {
  Procedures procedures;
  AsyncProcedures async;
  options.nameserver = nameserver;
  Server server(options);
  auto exported = ::Bench::export_to(server, LrpcDomains::kExportedName, procedures);
  if (exported) exported = ::AsyncBench::export_to(server, LrpcDomains::kAsyncName, async);
  return desk.serve(exported ? Status() : exported.error(), [] { return Status(); });
}

/// Starts a process that runs `body`; returns once that has ended its first turn.
Result<Child> start_domain(std::string_view name, std::string_view who, const Seat& seat,
                           const std::function<int(TurnDesk&)>& body) {
  auto desk = Shared<TurnDesk>::create();
  if (!desk) return desk.error();
  auto process = Child::spawn(name, seat, [&] { return body(**desk); });
  if (!process) return process.error();
  if (Status up = (*desk)->await(); !up) return Error{up.code(), fmt::format("{}: {}", who, up.error().message())};
  return process;
}

}  // namespace

Result<std::unique_ptr<PrivateNameserver>> PrivateNameserver::start(nameserver::NameserverOptions options) {
  std::unique_ptr<PrivateNameserver> self(new PrivateNameserver);
  if (!self->directory_.made()) return system_error("a directory for the nameserver's socket", errno);
  if (options.mode) ::chmod(self->directory_.file(".").c_str(), 0711);
  options.socket_path = self->socket_;
  const auto run = [&](TurnDesk& desk) { return run_nameserver(options, desk); };
  if (Status up = store(self->process_, start_domain("bench-lrpcd", "the nameserver", own_seat(), run)); !up)
    return up.error();
  return self;
}

PrivateNameserver::~PrivateNameserver() { process_.kill(); }  // before the directory is removed

Result<Child> start_bench_server(const std::string& nameserver, const Seat& seat, const ServerOptions& options) {
  return start_domain("bench-server", "the server", seat,
                      [&](TurnDesk& desk) { return run_server(nameserver, options, desk); });
}

Result<std::unique_ptr<LrpcDomains>> LrpcDomains::start(const Seat& server, const ServerOptions& options,
                                                        nameserver::NameserverOptions nameserver_options) {
  std::unique_ptr<LrpcDomains> self(new LrpcDomains);
  if (Status up = store(self->nameserver_, PrivateNameserver::start(std::move(nameserver_options))); !up)
    return up.error();
  if (Status up = store(self->server_, start_bench_server(self->nameserver_->socket(), server, options)); !up)
    return up.error();
  return self;
}

ImportOptions LrpcDomains::import_options(Gate gate) const {
  return {.nameserver = nameserver_->socket(), .timeout = std::chrono::minutes(4), .gate = gate};
}

}  // namespace lrpc::bench
