#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "remote_caller.h"
#include "remote_service.h"
#include "roles.h"
#include "service.h"

namespace lrpc::storm {
namespace {

using namespace std::chrono_literals;

/// Whether the export was made. Another server, or a nameserver that is away, may prevent it.
bool exported_or_not(const Result<ExportId>& done, const std::string& name, std::vector<ExportId>& exported) {
  if (done) {
    exported.push_back(*done);
    return true;
  }
  switch (done.code()) {
    case Errc::name_taken:
    case Errc::no_nameserver:
    case Errc::peer_gone:
    case Errc::timed_out: break;
    default: complain("export of %s: %s", name.c_str(), done.error().message().c_str());
  }
  return false;
}

bool export_or_not(Server& server, const std::string& name, Service& service, std::vector<ExportId>& exported,
                   ExportOptions options = {}) {
  const InCall waiting("export", 0, nullptr);
  return exported_or_not(Storm::export_to(server, name, service, std::move(options)), name, exported);
}

/// True, without an export, if there is no other machine.
bool export_or_not(Server& server, const std::string& name, RemoteService& service, std::vector<ExportId>& exported) {
  if (ledger().machines.load() == 1) return true;
  const InCall waiting("export", 0, nullptr);
  return exported_or_not(Remote::export_to(server, name, service), name, exported);
}

/// Withdraws a random name, often while a client is binding.
void withdraw_one(Server& server, std::vector<ExportId>& exported, Random& random) {
  const std::size_t at = random.below(static_cast<std::uint32_t>(exported.size()));
  const InCall waiting("withdraw", 0, nullptr);
  (void)server.withdraw(exported[at]);  // the nameserver may be away
  exported.erase(exported.begin() + static_cast<std::ptrdiff_t>(at));
}

/// A socket for clients that import privately. If several servers listen at the same path, one of them gets the
/// clients.
class PrivateDoor {
 public:
  PrivateDoor(const std::string& nameserver, const std::string& name) {
    const std::string path = private_socket(nameserver, name);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    listener_.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    (void)::unlink(path.c_str());
    const bool listens = ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                         ::listen(listener_.get(), 64) == 0;
    if (!listens && errno != EADDRINUSE) complain("cannot listen at %s: %s", path.c_str(), std::strerror(errno));
  }
  /// Serves all clients that have connected.
  void open(Server& server, Service& service, const ExportOptions& options = {}) {
    for (;;) {
      UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!socket) return;
      if (const Status served = Storm::serve_over(server, std::move(socket), service, options); !served)
        complain("serve_over: %s", served.error().message().c_str());
    }
  }

 private:
  UniqueFd listener_;
};

void publish(const Server& server, const Service& service) {
  const ServerStatistics now = server.statistics();
  Place& own = place();
  own.bindings.store(now.bindings);
  own.estacks.store(now.estacks);
  own.associated.store(now.estacks_associated);
  own.trap_listeners.store(now.trap_listeners);
  own.handles.store(service.handles());
  own.astacks_grown.store(now.astacks_grown);
  ledger().polled.store(now.poller_hits);
  own.reports.fetch_add(1);
}

}  // namespace

void block_sigterm() noexcept {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

bool sleep_or_end(std::uint32_t microseconds) noexcept {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  const timespec time{microseconds / 1'000'000, static_cast<long>(microseconds % 1'000'000) * 1000};
  return sigtimedwait(&set, nullptr, &time) == SIGTERM;
}

int run_server(const Orders& orders) {
  block_sigterm();
  Random random(orders.seed);
  Service service(orders.nameserver, random.seed());
  RemoteService remote_service(service);
  ServerOptions options{.nameserver = orders.nameserver};
  // In half of the servers few E-stacks or short idle times, so that A-stacks lose their E-stacks.
  options.max_estacks = random.chance(50) ? random.between(4, 8) : 64;
  options.estack_idle = std::chrono::milliseconds(random.chance(50) ? random.between(5, 60) : 1000);
  Server server(options);
  PrivateDoor door(orders.nameserver, mortal_name(random.below(kNames)));
  std::vector<ExportId> exported;
  if (orders.ends_itself && random.chance(30)) abort();
  std::uint32_t left = random.between(1, 40);
  for (bool end = false; !end;) {
    if (exported.size() < 2) (void)export_or_not(server, mortal_name(random.below(kNames)), service, exported);
    if (exported.size() < 4)
      (void)export_or_not(server, remote_name(random.below(kRemoteNames)), remote_service, exported);
    end = sleep_or_end(random.between(500, 40'000));
    door.open(server, service);
    if (exported.size() > 1 && random.chance(20)) withdraw_one(server, exported, random);
    if (orders.ends_itself && --left == 0) random.chance(50) ? _exit(0) : exit(0);
  }
  service.let_go();  // a binding ends before the Server that serves its calls
  return 0;
}

int run_survivor_server(const Orders& orders) {
  block_sigterm();
  Service service(orders.nameserver, orders.seed);
  RemoteService remote_service(service);
  ServerOptions options{.nameserver = orders.nameserver, .estack_idle = 300ms};
  if (fault_is(Fault::leaked_account)) options.max_bindings_per_user = 2;
  Server server(options);
  const auto authorise = [](const shim::Credentials&) -> Status {
    if (ledger().draining.load()) return Error{Errc::limit_reached, "shut out on purpose"};
    return {};
  };
  const ExportOptions rules = fault_is(Fault::shut_out) ? ExportOptions{.authorise = authorise} : ExportOptions{};
  PrivateDoor door(orders.nameserver, kSurvivorName);
  std::vector<ExportId> exported;
  while (!export_or_not(server, kSurvivorName, service, exported, rules)) {
    if (sleep_or_end(20'000)) return 1;
  }
  while (!export_or_not(server, kRemoteSurvivorName, remote_service, exported)) {
    if (sleep_or_end(20'000)) return 1;
  }
  while (!ledger().ending.load()) {
    if (sleep_or_end(20'000)) return 1;
    door.open(server, service, rules);
    const bool draining = ledger().draining.load();
    if (draining) service.let_go();
    publish(server, service);
    place().quiet.store(draining);
  }
  service.let_go();
  return 0;
}

}  // namespace lrpc::storm
