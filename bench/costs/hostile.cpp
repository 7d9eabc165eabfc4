// What hostile users of the nameserver cost others. They send requests without end and read no answer, connect without
// a pause, or leave descriptors that are slow to close. The bench measures an honest user who imports, and root who
// lists the names; and what a hostile server costs its client by such descriptors.
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bench.client.h"
#include "calls/lrpc_domains.h"
#include "core/child.h"
#include "core/interrupt.h"
#include "core/measured_client.h"
#include "hostile_users.h"
#include "lrpc/detail/shim/binder/bell.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/call/region.h"
#include "lrpc/nameserver.h"
#include "report/statistics.h"
#include "session.h"
#include "slow_to_close.h"

namespace lrpc::bench {
namespace {

struct Crowd {
  uid_t users;
  Attack attack;
};
constexpr Crowd kCrowds[] = {{0, Attack::ask},   {2, Attack::ask},         {10, Attack::ask},
                             {40, Attack::ask},  {2, Attack::connect},     {40, Attack::connect},
                             {2, Attack::close}, {2, Attack::close_laden}, {2, Attack::close_stuck}};
constexpr std::array<const char*, 5> kDoing{"ask", "connect", "close", "close laden", "close stuck"};  // by Attack
constexpr std::array<const char*, 3> kKinds{"lingering", "laden", "stuck"};                            // by Slow
constexpr std::size_t kRounds = 40;  // a round may take seconds
constexpr std::size_t kQuickRounds = 10;
constexpr uid_t kHonest = 40'000;
constexpr uid_t kHostile = 41'000;

/// In ticks.
struct Samples {
  std::uint64_t list[kRounds];
  std::uint64_t import_ticks[kRounds];
  std::uint64_t call[kRounds];
  std::uint64_t unbind[kRounds];
};

/// What root's `lrpc list` does, over a new connection.
Status list_names(const std::string& nameserver) {
  auto socket = shim::connect_nameserver(nameserver);
  if (!socket) return socket.error();
  if (auto sent = shim::send_message(socket->get(), {1, shim::ListRequest{}, {}, {}}); !sent) return sent;
  const auto answer = shim::receive_message(socket->get());
  if (!answer) return answer.error();
  return *answer && std::holds_alternative<shim::Listed>((*answer)->body) ? Status() : Errc::bad_message;
}

Status be_honest(const ImportOptions& options, std::size_t rounds, Samples& samples) {
  for (std::size_t i = 0; i < rounds; ++i) {
    Status listed;
    samples.list[i] = ticks_of([&] { listed = list_names(options.nameserver); });
    if (!listed) return listed;
    if (::seteuid(kHonest) != 0) return system_error("seteuid", errno);
    std::optional<Result<::Bench::Client>> client;
    samples.import_ticks[i] =
        ticks_of([&] { client.emplace(::Bench::Client::import(LrpcDomains::kExportedName, options)); });
    if (!*client) return client->error();
    Errc called = Errc::ok;
    samples.call[i] = ticks_of([&] { called = client->value().Null().code(); });
    if (called != Errc::ok) return Error{called, "a call"};
    samples.unbind[i] = ticks_of([&] { client.reset(); });
    if (::seteuid(0) != 0) return system_error("seteuid", errno);
  }
  return {};
}

void emit(Session& session, const Table& table, const std::string& test, const std::uint64_t (&ticks)[kRounds],
          std::size_t rounds) {
  std::vector<double> ns;
  for (std::size_t i = 0; i < rounds; ++i) ns.push_back(session.clock().ns(ticks[i]));
  session.emit(
      table,
      {.bench = "hostile", .gate = "adaptive", .placement = "unpinned", .test = test, .figures = figures_of(ns)});
}

/// A StuckFile for Slow::stuck, otherwise null. Errors: those of StuckFile::make().
Result<std::unique_ptr<StuckFile>> stuck_file_for(Slow kind, const Seat& seat) {
  if (kind == Slow::stuck) return StuckFile::make(seat);
  return std::unique_ptr<StuckFile>();
}
/// Releases the file, if there is one: by now(), or in the destructor. This must happen before the processes that wait
/// for it are ended, because until then they cannot even be killed.
struct Release {
  const std::unique_ptr<StuckFile>& file;
  void now() const noexcept {
    if (file != nullptr) file->release();
  }
  ~Release() { now(); }
};
const std::string& path_of(const std::unique_ptr<StuckFile>& file) {
  static const std::string none;
  return file != nullptr ? file->path() : none;
}

Status run(Session& session, const Table& table, const Crowd& crowd) {
  const uid_t users = crowd.users;
  const char* const doing = kDoing[static_cast<std::size_t>(crowd.attack)];
  const Seats seats = session.cores().seats(Placement::unpinned);
  nameserver::NameserverOptions options;
  options.mode = 0666;
  options.policy = nameserver::default_policy(nameserver::ExportRule::anyone);
  auto domains = LrpcDomains::start(seats.server, {}, options);
  if (!domains) return domains.error();
  const ImportOptions import_options = (*domains)->import_options(Gate::adaptive);
  const auto stuck = stuck_file_for(slow_of(crowd.attack), seats.client);
  if (!stuck) return fmt::print("Skipped, {} {}: {}\n", users, doing, stuck.error().message()), Status();
  std::vector<Child> hostile;
  const Release release{*stuck};
  for (uid_t half = 0; half < std::min<uid_t>(users, 2); ++half) {
    auto child = Child::spawn("bench-hostile", seats.client, [&] {
      HostileUsers(import_options.nameserver, kHostile + half * users / 2, users / 2, crowd.attack, path_of(*stuck))
          .live();
      return 0;
    });
    if (!child) return child.error();
    hostile.push_back(std::move(*child));
  }
  const std::size_t rounds = session.quick() ? kQuickRounds : kRounds;
  const auto samples = measured_by_client<Samples>(
      seats.client, [&](Samples& ticks) { return be_honest(import_options, rounds, ticks); });
  if (!samples) return samples.error();
  release.now();
  for (Child& child : hostile)  // wait() kills those that have not ended
    if (child.wait(std::chrono::milliseconds(0)).has_value())
      return Error{Errc::not_permitted, "this process cannot be the users that it wants"};
  const auto row = [&](const char* test, const std::uint64_t(&ticks)[kRounds]) {
    emit(session, table, fmt::format("{}, {} {}", test, users, doing), ticks, rounds);
  };
  row("root's list", (*samples)->list);
  row("import", (*samples)->import_ticks);
  row("first call", (*samples)->call);
  row("unbind", (*samples)->unbind);
  return {};
}

// ---- a hostile server ----

/// Answers an import over each socket, and leaves a slow descriptor in the bell, which its client never reads.
Status answer_with_something_slow(const std::vector<UniqueFd>& sockets, Slow kind, const std::string& stuck_path) {
  const auto layout = shim::RegionLayout::of(::Bench::kPdl.classes);
  if (!layout) return layout.error();
  SlowThings things(kind, stuck_path);
  std::vector<UniqueFd> bells;
  for (const UniqueFd& socket : sockets) {
    auto region = shim::create_region(*layout);
    auto bell = shim::make_socket_pair();
    if (!region || !bell) return region ? bell.error() : region.error();
    things.leave([&](int fd) {
      (void)shim::offer_on_bell(bell->first.get(), shim::BellMessage::callback, fd, std::chrono::milliseconds(0));
    });
    shim::BinderMessage answer;
    answer.request = 1;
    answer.body = shim::Bound{.binding_id = 1,
                              .nonce = {},
                              .server = {},
                              .classes = {::Bench::kPdl.classes.begin(), ::Bench::kPdl.classes.end()}};
    answer.fds.push_back(*std::move(region));
    answer.fds.push_back(std::move(bell->second));
    if (Status sent = shim::send_message(socket.get(), answer); !sent) return sent;
    bells.push_back(std::move(bell->first));
  }
  for (;;) ::pause();
}

Status import_and_let_go(std::vector<UniqueFd>& sockets, Samples& samples) {
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    std::optional<Result<::Bench::Client>> client;
    samples.import_ticks[i] = ticks_of([&] { client.emplace(::Bench::Client::import_over(std::move(sockets[i]))); });
    if (!*client) return client->error();
    samples.unbind[i] = ticks_of([&] { client.reset(); });
  }
  return {};
}

Status run_hostile_server(Session& session, const Table& table, Slow kind) {
  const char* const name = kKinds[static_cast<std::size_t>(kind)];
  const Seats seats = session.cores().seats(Placement::unpinned);
  const auto stuck = stuck_file_for(kind, seats.client);
  if (!stuck) return fmt::print("Skipped, ~Client, {}: {}\n", name, stuck.error().message()), Status();
  std::vector<UniqueFd> clients;
  std::vector<UniqueFd> servers;
  const std::size_t rounds = session.quick() ? kQuickRounds : kRounds;
  for (std::size_t i = 0; i < rounds; ++i) {
    auto ends = shim::make_socket_pair();
    if (!ends) return ends.error();
    constexpr int kOn = 1;  // import_over() sets it too, but the answer may arrive before that
    (void)::setsockopt(ends->first.get(), SOL_SOCKET, SO_PASSCRED, &kOn, sizeof kOn);
    clients.push_back(std::move(ends->first));
    servers.push_back(std::move(ends->second));
  }
  auto hostile = Child::spawn("bench-hostile", seats.server, [&] {
    clients.clear();
    return answer_with_something_slow(servers, kind, path_of(*stuck)) ? 0 : 1;
  });
  const Release before_hostile{*stuck};
  if (!hostile) return hostile.error();
  servers.clear();
  struct Measured {
    Samples samples;
    std::atomic<bool> done;
  };
  auto measured = Shared<Measured>::create();
  if (!measured) return measured.error();
  auto client = Child::spawn("bench-client", seats.client, [&] {
    const Status done = import_and_let_go(clients, (*measured)->samples);
    if (!done) fmt::print("The client of a hostile server: {}\n", done.error().message());
    (*measured)->done = true;
    return done ? 0 : 1;
  });
  const Release before_client{*stuck};
  if (!client) return client.error();
  constexpr std::chrono::milliseconds kLook{10};
  constexpr std::chrono::minutes kLongest{2};
  for (auto waited = kLook * 0; !(*measured)->done && !interrupted() && waited < kLongest; waited += kLook)
    interruptible_sleep(kLook);
  before_client.now();
  const auto status = client->wait(std::chrono::seconds(10));
  if (!status) return Error{status.code(), "the client " + std::string(status.error().message())};
  if (*status != 0) return Error{Errc::call_failed, "the client of a hostile server failed"};
  emit(session, table, fmt::format("import, server {}", name), (*measured)->samples.import_ticks, rounds);
  emit(session, table, fmt::format("~Client, server {}", name), (*measured)->samples.unbind, rounds);
  return {};
}

}  // namespace

void hostile_users(Session& session) {
  print_intro(
      "Beside hostile users, ns",
      "Root lists the names, and an honest user imports, calls and unbinds, each time newly come, while 0, 2, 10 "
      "and 40 other users keep 64 connections each, ask without end and read no answer, 2 and 40 connect "
      "without a pause, and 2 clients of the server leave it what is slow to close: a socket that lingers, a socket in "
      "whose queue such a one lies, a file that is stuck. Two processes play them. A hostile server leaves the same to "
      "its client. The bar for each is 100 ms at most.");
  if (::geteuid() != 0) return fmt::print("Skipped: only root can be several users.\n");
  const Table table(row_columns());
  for (const Crowd& crowd : kCrowds) {
    if (interrupted()) return;
    session.check(run(session, table, crowd));
  }
  for (const Slow kind : {Slow::lingering, Slow::laden, Slow::stuck}) {
    if (interrupted()) return;
    session.check(run_hostile_server(session, table, kind));
  }
}

}  // namespace lrpc::bench
