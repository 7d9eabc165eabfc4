// Attacks the nameserver's core over its sockets: messages that hold, are changed or are garbage, with descriptors of
// several kinds, over several connections of several users, in any order and at any time. Meanwhile, and when all is
// over, an honest server's name is imported by an honest client, whoever connects anew is served, nothing is logged that
// could be mistaken for another line, and no descriptor is left.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "input.h"
#include "lrpc/shim/binder/binder_protocol.h"
#include "pretence.h"
#include "registry/core.h"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);

namespace lrpc::nameserver {
namespace {

using fuzz::Input;
using fuzz::let_pass;
using fuzz::require;
using shim::BinderMessage;
using namespace std::chrono_literals;

constexpr std::size_t kSlots = 8;  ///< Connections of attackers.
constexpr int kMostActions = 100;  ///< Of one input.
constexpr unsigned kConnectionsPerUser = 4;
constexpr uid_t kAttackers[] = {1001, 1002};
constexpr uid_t kHonestClient = 1003;
constexpr uid_t kNewcomer = 1004;
constexpr std::string_view kHonestName = "honest";
constexpr AStackClass kHonestClasses[] = {{.image_size = 64, .tail_size = 0, .count = 2}};

std::string directory;  ///< Of the socket.

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

bool printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

/// Cheaper than to receive, which makes room for the longest message first.
bool anything_from(const UniqueFd& socket) {
  pollfd entry{socket.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

shim::OwnedInterfaceId honest_interface() { return {"Honest", 1, 0, 42}; }

/// The nameserver, an honest server and an honest client; attackers come and go.
class World {
 public:
  World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void act(Input& input);
  /// The honest client imports the honest name, and gets it.
  void bind_honestly();
  /// Attackers go; what is left is what was there before they came.
  void finish();

 private:
  struct Attacker {
    UniqueFd socket;
    std::vector<std::uint64_t> exports;   ///< Ids it was told.
    std::vector<std::uint64_t> bindings;  ///< Ids it was asked about.
    std::vector<UniqueFd> received;
  };

  UniqueFd connect(uid_t user);
  void ask_honestly();
  std::uint32_t ask(const UniqueFd& client);
  void expect_bound(const UniqueFd& client, std::uint32_t request);
  void expect_served(uid_t user);
  bool step();
  void settle();
  void send(const UniqueFd& socket, std::uint32_t request, shim::BinderBody body);
  std::optional<BinderMessage> receive(const UniqueFd& socket);
  void serve_honestly();
  void listen(Attacker& attacker);
  void say(Input& input, Attacker& attacker);
  shim::BinderBody body(Input& input, const Attacker& attacker);
  static std::string name(Input& input);
  std::vector<UniqueFd> descriptors(Input& input, const Attacker& attacker);
  void transmit(const Attacker& attacker, std::span<const std::byte> bytes, const std::vector<UniqueFd>& fds);

  NameserverOptions options_;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<Core> core_;
  UniqueFd server_;
  UniqueFd client_;
  std::uint32_t last_request_ = 0;
  std::uint32_t asked_ = 0;  ///< The honest client's, if its answer is not due yet.
  std::array<Attacker, kSlots> attackers_;
  std::size_t at_rest_ = 0;  ///< Descriptors, with nobody but the honest.
};

World::World() {
  fuzz::restart_time();
  options_.socket_path = directory + "/sock";
  options_.policy = default_policy(ExportRule::anyone);
  // Small, so that inputs reach them; together they leave room for the honest.
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
  settle();  // while this is the user
  return *std::move(socket);
}

bool World::step() {
  const auto stepped = loop_->step();
  require(bool(stepped), "the event loop goes on");
  return *stepped;
}

/// As far as it goes without time. The honest do their part.
void World::settle() {
  for (int i = 0; i < 1000; ++i) {
    const bool moved = step();
    if (server_) serve_honestly();
    if (!moved) return;
  }
  require(false, "the nameserver comes to rest");
}

void World::send(const UniqueFd& socket, std::uint32_t request, shim::BinderBody body) {
  require(bool(shim::send_message(socket.get(), {request, std::move(body), {}, {}}, false)),
          "the nameserver hears the honest");
}

std::optional<BinderMessage> World::receive(const UniqueFd& socket) {
  if (!anything_from(socket)) return std::nullopt;
  auto message = shim::receive_message(socket.get(), 0ms);
  require(bool(message), "the nameserver keeps the honest and says only what it may");
  return *std::move(message);
}

/// Accepts whatever it is asked, and lets go of it.
void World::serve_honestly() {
  for (;;) {
    if (at_rest_ == 0) return;  // its own export's answer is the constructor's
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

/// The honest server has been asked and does not answer before settle(): what others say comes first.
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
  // Its turn comes behind those who came before; each of theirs is bounded.
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

/// As many connections as a user may have, and the last of them gets what it asks for.
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
  for (const uid_t user : kAttackers) expect_served(user);  // nothing is held against those who start anew
  settle();
  let_pass(10s);
  settle();
  bind_honestly();
  require(open_descriptors() == at_rest_, "no descriptor is left of those who went");
}

/// Reads all that it was told, and remembers the ids.
void World::listen(Attacker& attacker) {
  for (int i = 0; i < 64 && anything_from(attacker.socket); ++i) {
    auto message = shim::receive_message(attacker.socket.get(), 0ms);
    if (!message) {
      require(message.code() != Errc::bad_message, "the nameserver says only what it may");
      attacker = {};
      return;
    }
    if (!*message) return;
    BinderMessage& said = **message;
    if (const auto* exported = std::get_if<shim::Exported>(&said.body)) attacker.exports.push_back(exported->export_id);
    if (const auto* asked = std::get_if<shim::BindRequest>(&said.body)) attacker.bindings.push_back(asked->binding_id);
    if (const auto* failed = std::get_if<shim::Failed>(&said.body)) {
      require(failed->text.size() <= shim::kMaxReasonLength && printable(failed->text),
              "a reason is short and printable");
    }
    for (UniqueFd& fd : said.fds) {
      if (attacker.received.size() < 6) attacker.received.push_back(std::move(fd));
    }
  }
}

std::string World::name(Input& input) {
  switch (const std::uint8_t chosen = input.byte(); chosen % 12) {
    case 0:
    case 1: return std::string(kHonestName);
    case 2: return std::string(shim::kNetworkName);
    case 3: return "";
    case 4: return "a@host";
    case 5: return std::string(shim::kMaxNameLength, 'n');
    default: return {'n', static_cast<char>('a' + chosen % 5)};
  }
}

/// A message that makes sense, or almost.
shim::BinderBody World::body(Input& input, const Attacker& attacker) {
  const auto one_of = [&](const std::vector<std::uint64_t>& known) -> std::uint64_t {
    const std::uint8_t chosen = input.byte();
    // Anything; or what somebody else has perhaps been told, who connected or exported early.
    const auto pair = [](std::uint64_t high, std::uint32_t low) { return high << 32 | low; };
    if (chosen % 8 == 0) {
      const std::uint32_t low = input.four();
      return pair(input.byte(), low);
    }
    if (chosen % 8 == 1) {
      const std::uint8_t serial = input.byte();
      return pair(serial % 8, input.byte() % 8U + 1);
    }
    if (known.empty()) return chosen / 8;
    return known[chosen % known.size()];
  };
  const auto text = [&] {
    const std::size_t size = input.two() % 2048;
    return std::string(size, static_cast<char>(input.byte()));
  };
  const auto interface = [&]() -> shim::OwnedInterfaceId {
    const std::uint8_t chosen = input.byte();
    if (chosen % 4 != 0) return honest_interface();
    return {chosen % 8 == 0 ? "" : "Other", input.byte(), input.byte(), input.byte()};
  };
  switch (input.byte() % 10) {
    case 0:
    case 1: {
      shim::ExportRequest wish;
      wish.name = name(input);
      wish.interface = interface();
      for (std::size_t count = input.byte() % 4; count > 0; --count)
        wish.classes.push_back({input.two(), input.byte() % 3 == 0 ? input.four() : 0, input.byte()});
      if (input.byte() % 2 == 0) wish.text = text();
      if (input.byte() % 4 == 0) wish.descriptors = text();
      return wish;
    }
    case 2: return shim::WithdrawRequest{one_of(attacker.exports)};
    case 3:
    case 4: {
      constexpr std::uint32_t kTimes[] = {0, 1, 50, 3000, 100'000, shim::ImportRequest::kForever};
      shim::ImportRequest wish{.name = name(input),
                               .interface = interface(),
                               .timeout_ms = kTimes[input.byte() % std::size(kTimes)],
                               .gate = static_cast<shim::Gate>(input.byte() % 6)};
      if (input.byte() % 8 == 0) wish.principal = shim::Principal{.host = input.four(), .key = "key"};
      return wish;
    }
    case 5:
    case 6: {
      constexpr Errc kAnswers[] = {
          Errc::ok,           Errc::ok,          Errc::not_permitted, Errc::name_unknown, Errc::limit_reached,
          Errc::system_error, Errc::call_failed, Errc::timed_out};
      const std::uint64_t binding = one_of(attacker.bindings);
      const Errc code = kAnswers[input.byte() % std::size(kAnswers)];
      return shim::BindReply{binding, code, input.byte() % 4 == 0 ? text() : ""};
    }
    case 7: return shim::ListRequest{input.byte() % 2 == 0 ? "" : name(input)};
    case 8: return shim::DescribeRequest{name(input)};
    default:
      switch (input.byte() % 5) {
        case 0: return shim::Bound{};
        case 1: return shim::BindRequest{};
        case 2: return shim::Failed{Errc::limit_reached, text()};
        case 3: return shim::PollerPage{};
        default: return shim::WakeAllocator{};
      }
  }
}

/// What a peer may send along.
std::vector<UniqueFd> World::descriptors(Input& input, const Attacker& attacker) {
  std::vector<UniqueFd> fds;
  for (std::size_t count = input.byte() % 8; count > 0; --count) {
    int pair[2] = {-1, -1};
    switch (input.byte() % 7) {
      case 0: fds.emplace_back(::memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING)); break;
      case 1:
        fds.emplace_back(::memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
        ::fcntl(fds.back().get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
        break;
      case 2:
        if (::pipe2(pair, O_CLOEXEC) == 0) {
          fds.emplace_back(pair[0]);
          fds.emplace_back(pair[1]);
        }
        break;
      case 3:
        if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
          fds.emplace_back(pair[0]);
          ::close(pair[1]);
        }
        break;
      case 4: fds.emplace_back(::open("/dev/null", O_RDWR | O_CLOEXEC)); break;
      case 5: fds.emplace_back(::fcntl(attacker.socket.get(), F_DUPFD_CLOEXEC, 0)); break;  // in flight over itself
      default:
        if (!attacker.received.empty()) fds.emplace_back(::fcntl(attacker.received.back().get(), F_DUPFD_CLOEXEC, 0));
        break;
    }
  }
  return fds;
}

void World::transmit(const Attacker& attacker, std::span<const std::byte> bytes, const std::vector<UniqueFd>& fds) {
  std::array<int, 32> numbers{};
  const std::size_t count = std::min(fds.size(), numbers.size());
  for (std::size_t i = 0; i < count; ++i) numbers[i] = fds[i].get();
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof numbers)> control{};
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (count != 0) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(rights), numbers.data(), count * sizeof(int));
  }
  (void)::sendmsg(attacker.socket.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void World::say(Input& input, Attacker& attacker) {
  const std::uint8_t how = input.byte();
  std::vector<std::byte> bytes;
  if (how % 8 == 0) {
    const auto raw = input.bytes(input.two() % 512);
    bytes.assign(raw.begin(), raw.end());
  } else {
    auto encoded = shim::encode({input.byte(), body(input, attacker), {}, {}});
    if (!encoded) return;
    bytes = *std::move(encoded);
    if (how % 8 == 1 && !bytes.empty()) bytes[input.two() % bytes.size()] = static_cast<std::byte>(input.byte());
    if (how % 8 == 2) bytes.resize(input.two() % (bytes.size() + 8));
  }
  transmit(attacker, bytes, how >= 0xe0 ? descriptors(input, attacker) : std::vector<UniqueFd>());
}

void World::act(Input& input) {
  const std::uint8_t action = input.byte();
  Attacker& attacker = attackers_[(action >> 4) % kSlots];
  if (!attacker.socket) {
    attacker = {};
    attacker.socket = connect(kAttackers[(action >> 4) % std::size(kAttackers)]);
  }
  switch (action & 0xf) {
    case 0:
    case 1: attacker = {}; break;
    case 2: ::shutdown(attacker.socket.get(), input.byte() % 2 == 0 ? SHUT_WR : SHUT_RD); break;
    case 3: {
      if (asked_ != 0) bind_honestly();  // its clerk is honest, but has its time, too
      constexpr std::chrono::milliseconds kTimes[] = {1ms, 10ms, 60ms, 1000ms, 6000ms};
      let_pass(kTimes[input.byte() % std::size(kTimes)]);
      step();
      break;
    }
    case 4: bind_honestly(); break;
    case 5:
    case 6: listen(attacker); break;
    case 7: action < 0x80 ? void(step()) : ask_honestly(); break;
    case 8: settle(); break;
    default: say(input, attacker); break;
  }
}

void run(Input input) {
  const std::size_t before = open_descriptors();
  {
    World world;
    for (int i = 0; i < kMostActions && input.more(); ++i) world.act(input);
    world.finish();
  }
  require(open_descriptors() == before, "no descriptor is left of the nameserver");
}

}  // namespace
}  // namespace lrpc::nameserver

int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  std::string pattern = "/tmp/lrpc-fuzz-XXXXXX";
  lrpc::fuzz::require(::mkdtemp(pattern.data()) != nullptr, "there is a place for the socket");
  lrpc::nameserver::directory = pattern;
  std::atexit([] {
    std::error_code ignored;
    std::filesystem::remove_all(lrpc::nameserver::directory, ignored);
  });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lrpc::nameserver::run({data, size});
  return 0;
}
