// The nameserver, and the honest server and client.
#include "world.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "pretence.h"

namespace lrpc::nameserver {
namespace {

using fuzz::let_pass;
using namespace std::chrono_literals;

constexpr uid_t kHonestClient = 1003;
constexpr uid_t kNewcomer = 1004;
constexpr AStackClass kHonestClasses[] = {{.image_size = 64, .tail_size = 0, .count = 2}};

}  // namespace

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

bool printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

bool anything_from(const UniqueFd& socket) {
  pollfd entry{socket.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

shim::OwnedInterfaceId honest_interface() { return {"Honest", 1, 0, 42}; }

World::World(const std::string& directory) {
  fuzz::restart_time();
  options_.socket_path = directory + "/sock";
  options_.policy = default_policy(ExportRule::anyone);
  // Small, so that inputs reach them. Together they leave room for the honest server and client.
  options_.limits = {.user = {.connections = kConnectionsPerUser},
                     .max_connections = 16,
                     .max_exports_per_connection = 4,
                     .max_export_bytes_per_connection = 4096,
                     .max_imports_per_connection = 4,
                     .max_binds_per_server = 3,
                     .max_queued_messages = 8,
                     .max_fds_in_flight_per_connection = 12,
                     .max_fds_in_flight = 200,
                     .max_region_bytes = 1U << 20};
  options_.machine_load = [] { return MachineLoad{.processors = 2, .idle = 1, .running = 1}; };
  options_.log = [](LogLevel, std::string_view line) { require(printable(line), "the log is printable"); };
  auto loop = EventLoop::create(Backend::epoll);
  auto listener = ListenSocket::open(options_.socket_path, 0600);
  require(loop && listener, "the nameserver can listen");
  loop_ = *std::move(loop);
  core_ = std::make_unique<Core>(*loop_, *std::move(listener), options_);
  require(bool(core_->begin()), "the nameserver begins");

  server_ = connect(::geteuid());
  client_ = connect(kHonestClient);
  send(server_, 1,
       shim::ExportRequest{.name = std::string(kHonestName),
                           .interface = honest_interface(),
                           .classes = {std::begin(kHonestClasses), std::end(kHonestClasses)},
                           .text = "interface"});
  settle();
  const auto exported = receive(server_);
  require(exported && std::holds_alternative<shim::Exported>(exported->body), "the honest server exports");
  settle();
  at_rest_ = open_descriptors();
}

UniqueFd World::connect(uid_t user) {
  fuzz::pretend_user(user);
  auto socket = shim::connect_nameserver(options_.socket_path, false);
  require(bool(socket), "whoever wants can connect");
  ::fcntl(socket->get(), F_SETFL, O_NONBLOCK);
  settle();  // while this user is pretended
  return *std::move(socket);
}

bool World::step() {
  const auto stepped = loop_->step();
  require(bool(stepped), "the event loop goes on");
  return *stepped;
}

/// Runs the nameserver until nothing happens without time. The honest server answers.
void World::settle() {
  for (int i = 0; i < 1000; ++i) {
    const bool moved = step();
    if (server_) serve_honestly();
    if (!moved) return;
  }
  require(false, "the nameserver comes to rest");
}

void World::send(const UniqueFd& socket, std::uint32_t request, shim::BinderBody body) {
  require(bool(shim::send_message(socket.get(), {request, std::move(body), {}, {}}, kDoNotWait)),
          "the nameserver hears the honest");
}

std::optional<BinderMessage> World::receive(const UniqueFd& socket) {
  if (!anything_from(socket)) return std::nullopt;
  auto message = shim::receive_message(socket.get(), 0ms);
  require(bool(message), "the nameserver keeps the honest and says only what it may");
  return *std::move(message);
}

/// Accepts every bind request, and closes its descriptors.
void World::serve_honestly() {
  for (;;) {
    if (at_rest_ == 0) return;  // the constructor receives its own export's answer
    const auto message = receive(server_);
    if (!message) return;
    const auto* asked = std::get_if<shim::BindRequest>(&message->body);
    if (asked == nullptr) {
      require(std::holds_alternative<shim::PollerPage>(message->body), "the server is told nothing else");
      continue;
    }
    require(message->fds.size() == 3, "a request to bind brings region, process and bell");
    send(server_, message->request, shim::BindReply{asked->binding_id, Errc::ok, {}});
  }
}

std::uint32_t World::ask(const UniqueFd& client) {
  const std::uint32_t request = ++last_request_;
  send(client, request,
       shim::ImportRequest{.name = std::string(kHonestName), .interface = honest_interface(), .timeout_ms = 4000});
  return request;
}

/// Asks the honest server, which does not answer before settle(): so messages of others may come first.
void World::ask_honestly() {
  if (asked_ != 0) return;
  asked_ = ask(client_);
  step();
}

void World::bind_honestly() {
  expect_bound(client_, asked_ != 0 ? asked_ : ask(client_));
  asked_ = 0;
}

void World::expect_bound(const UniqueFd& client, std::uint32_t request) {
  // Earlier requests are served first; each of them is bounded.
  for (int i = 0; i < 400; ++i) {
    settle();
    const auto answer = receive(client);
    if (!answer) {
      let_pass(5ms);
      continue;
    }
    const auto* bound = std::get_if<shim::Bound>(&answer->body);
    require(bound != nullptr && answer->request == request, "the honest client is bound");
    require(answer->fds.size() == 3, "a binding is region, process and bell");
    require(bound->classes.size() == 1 && bound->classes[0] == kHonestClasses[0], "with the honest server's A-stacks");
    require(bound->server.uid == ::geteuid(), "to the honest server");
    return;
  }
  require(false, "the honest client is bound in time");
}

/// Makes as many connections as a user may have, and checks that the last one is served.
void World::expect_served(uid_t user) {
  std::vector<UniqueFd> connections;
  while (connections.size() < kConnectionsPerUser) connections.push_back(connect(user));
  const UniqueFd& newcomer = connections.back();
  send(newcomer, ++last_request_, shim::DescribeRequest{std::string(kHonestName)});
  settle();
  const auto answer = receive(newcomer);
  require(answer && std::holds_alternative<shim::Described>(answer->body), "whoever connects is served");
  expect_bound(newcomer, ask(newcomer));
  connections.clear();
  settle();
}

void World::finish() {
  bind_honestly();
  for (Attacker& attacker : attackers_) attacker = {};
  settle();
  expect_served(kNewcomer);
  for (const uid_t user : kAttackers) expect_served(user);  // their quotas were given back
  settle();
  let_pass(10s);
  settle();
  bind_honestly();
  require(open_descriptors() == at_rest_, "no descriptor is left of those who went");
}

}  // namespace lrpc::nameserver
