// Attacks a client through what it imports from other hosts. The directory names any hosts. The network domain binds or
// refuses for any reason. Other hosts, alone and as members of a group, answer calls with any status and any bytes.
// What must hold: each call ends, with an existing error or with conforming results. Nothing is written behind the
// caller's memory. The client tries the hosts that the directory named, in that order, at most eight, and none after
// one was bound. There are no more replies of a group than came, and a damaged one spoils no other. No handle is passed
// to a group.
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "input.h"
#include "lrpc/client.h"
#include "lrpc/detail/client/remote/group_call.h"
#include "lrpc/nameserver.h"
#include "lrpc/server.h"
#include "replica.client.h"
#include "replica.server.h"
#include "strangers.h"

namespace lrpc::fuzz {
namespace {

constexpr std::uint8_t kMostCalls = 8;
constexpr std::chrono::milliseconds kPatience{120'000};

bool exists(Errc code) { return code != Errc::ok && describe(code) != "unknown error"; }

/// A server of this machine, for names that the directory calls this machine's own.
struct HonestReplica {
  Replica::Tally Begin(CallContext& call, std::uint32_t first) {
    return call.grant<Replica::Tally>(std::make_shared<std::uint32_t>(first));
  }
  using Tally = std::uint32_t;
  std::uint32_t Count(CallContext&, std::uint32_t& tally) { return ++tally; }
  void Forget(CallContext&, const std::shared_ptr<std::uint32_t>&) {}
  std::int32_t Add(CallContext&, std::int32_t a, std::int32_t b) { return a + b; }
  Result<std::uint32_t, Replica::TooBig> Double(CallContext&, std::uint32_t value) { return value; }
  Replica::GreetResults Greet(CallContext&, const String<100>&) { return {}; }
  Status Refuse(CallContext&) { return {}; }
  String<16000> Large(CallContext&, std::uint32_t) { return {}; }
  Status Fill(CallContext&, std::uint32_t, Buffer&) { return {}; }
  std::uint8_t Halves(CallContext&, std::uint32_t, Buffer&, Buffer&) { return 0; }
  std::uint8_t Sign(CallContext&, std::uint32_t&, String<20>&, Buffer&, std::span<const std::byte>) { return 0; }
  Status Increase(CallContext&, std::uint32_t&) { return {}; }
  void Note(CallContext&, std::uint32_t) {}
};

/// A nameserver, and the servers that are imported through it. Never destroyed, because a fuzzer ends by _exit().
class World {
 public:
  World() {
    std::string folder = "/tmp/lrpc-fuzz-XXXXXX";
    require(::mkdtemp(folder.data()) != nullptr, "there is a folder");
    nameserver::NameserverOptions options;
    options.socket_path = folder + "/lrpcd.sock";
    options.bind_timeout = kPatience;
    auto started = nameserver::Nameserver::start(std::move(options));
    require(bool(started), "a nameserver starts");
    nameserver_ = *std::move(started);
    server_ = std::make_unique<Server>(ServerOptions{.nameserver = nameserver_->socket_path()});
    require(NetworkPath::export_to(*server_, std::string(shim::kNetworkName), network_) &&
                Directory::export_to(*server_, std::string(shim::kDirectoryName), directory) &&
                Replica::export_to(*server_, "local", honest_),
            "the strangers are exported");
    import_options.nameserver = nameserver_->socket_path();
    import_options.watcher = false;
    import_options.call_timeout = kPatience;
  }
  ImportOptions import_options;
  HostileDirectory directory;

 private:
  std::unique_ptr<nameserver::Nameserver> nameserver_;
  HostileNetwork network_;
  HonestReplica honest_;
  std::unique_ptr<Server> server_;
};

World& world() {
  static World* const one = new World;
  return *one;
}

/// Room for results, followed by a guard area.
class Room {
 public:
  explicit Room(std::size_t size) : memory_(size + kFence, kPost), buffer(std::span(memory_).first(size)) {}
  ~Room() {
    require(buffer.size() <= buffer.capacity(), "a result fits its buffer");
    require(std::all_of(memory_.end() - kFence, memory_.end(), [](std::byte byte) { return byte == kPost; }),
            "nothing is written behind the caller's memory");
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

 private:
  static constexpr std::ptrdiff_t kFence = 64;
  static constexpr std::byte kPost{0xf5};
  std::vector<std::byte> memory_;

 public:
  Buffer buffer;
};

template <class Outcome>
void check(const Outcome& outcome) {
  require(outcome || exists(outcome.code()), "an error has a name");
  if (!outcome && outcome.code() != Errc::raised)
    require(outcome.error().message().size() <= shim::kMaxReasonLength, "and a text that is short");
}

template <class Replies>
void check_all(const Replies& replies) {
  check(replies);
  if (!replies) return;
  require(replies->size() <= script().replies && replies->members == script().members,
          "no member replies that did not");
  for (const auto& one : *replies) check(one.result);
}

void call(Replica::Client& client, std::uint8_t which) {
  switch (which % 16) {
    case 0: return check(client.Add(1, 2));
    case 1: {
      const auto doubled = client.Double(3);
      check(doubled);
      const auto* const raised = doubled.raised<Replica::TooBig>();
      require(raised == nullptr || raised->what.size() <= 64, "a raised error conforms");
      return;
    }
    case 2: {
      const auto greeted = client.Greet("you");
      check(greeted);
      require(!greeted || greeted->greeting.size() <= 200, "a text conforms");
      return;
    }
    case 3: return check(client.Refuse());
    case 4: return check(client.Large(5));
    case 5: {
      Room room(which < 128 ? 1000 : 10);
      return check(client.Fill(5, room.buffer));
    }
    case 6: {
      Room low(1000);
      Room high(which < 128 ? 1000 : 0);
      return check(client.Halves(5, low.buffer, high.buffer));
    }
    case 7: return check(client.Note(1));
    case 8: {
      const auto begun = client.Begin(1);
      check(begun);
      if (begun) check(client.Count(*begun));
      return;
    }
    case 9: return check(client.start().Add(1, 2).finish());
    case 10: return check_all(client.all().Add(1, 2));
    case 11: return check_all(client.all().Double(1));
    case 12: {
      const auto replies = client.all().Fill(5);
      check_all(replies);
      for (std::size_t i = 0; replies && i < replies->size(); ++i)
        require(replies->replies[i].passed.size() <= 1000, "bytes have their bound");
      return;
    }
    case 13: return check_all(client.all().Halves(5));
    case 14: return check_all(client.all().Greet("all"));
    default: {
      if (which < 128) return check_all(client.all().Large(5));
      const Room held(3);
      const auto signatures = client.all().Sign(1, "mark", held.buffer, {});
      check_all(signatures);
      for (std::size_t i = 0; signatures && i < signatures->size(); ++i) {
        const auto& [count, mark, data] = signatures->replies[i].passed;
        require(mark.view().size() <= 20 && data.size() <= 1000, "what comes back has its bound");
      }
      return;
    }
  }
}

/// Checks that the hosts tried are those that the directory named, from the first one on.
void check_tried(const std::vector<std::string>& tried) {
  const HostileDirectory& directory = world().directory;
  std::vector<std::string> named;
  const std::string all = directory.answer.value_or("");
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find(' ', begin), all.size());
    if (end > begin) named.push_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  named.resize(std::min<std::size_t>(named.size(), 8));
  if (directory.own && !named.empty()) named.erase(named.begin());  // not over the network
  // The client does not try such a host: the part before its '@' would belong to the name, which has no '@'.
  std::erase_if(named, [](const std::string& host) { return host.find('@') != std::string::npos; });
  require(tried.size() <= named.size() && std::equal(tried.begin(), tried.end(), named.begin()),
          "the hosts that the directory named are tried in its order");
}

void call_all_of(Replica::Client& client, std::span<const std::byte> calls) {
  for (const std::byte one : calls) call(client, std::to_integer<std::uint8_t>(one));
}

/// Imports, and makes some calls.
void import_and_call(const std::string& name, std::span<const std::byte> calls, Input input) {
  script().begin(input, false);
  world().directory.answer.reset();
  auto client = Replica::Client::import(name, world().import_options);
  if (name.ends_with('@')) check_tried(script().tried());
  if (!client) return require(exists(client.code()), "an import that fails has a reason");
  call_all_of(*client, calls);
}

/// Calls through a binding to a host or to a group that is kept, because an import takes far longer than a call.
void call_through_kept(bool group, std::span<const std::byte> calls, Input input) {
  static std::array<std::optional<Replica::Client>, 2> kept;
  std::optional<Replica::Client>& client = kept[group ? 1 : 0];
  script().begin(input, true);
  if (!client || client->binding().revoked()) {
    auto again = Replica::Client::import(group ? "files@group" : "files@10.0.0.2", world().import_options);
    require(bool(again), "what is bound well can be imported");
    client = *std::move(again);
  }
  const std::size_t before = script().calls_made();
  call_all_of(*client, calls);
  if (!group) return;
  // These calls pass handles, so none of them reaches a group.
  const auto begun = client->Begin(1);
  require(!begun, "no handle comes from a group");
  require(client->binding().revoked() || script().calls_made() - before <= calls.size(), "and none goes to it");
}

void run(Input input) {
  constexpr std::array<const char*, 4> kNames{"files@", "files@", "local@", "files@10.0.0.2"};
  const std::uint8_t which = input.byte() % 16;
  const auto calls = input.bytes(input.byte() % kMostCalls);
  if (which < kNames.size()) return import_and_call(kNames[which], calls, input);
  call_through_kept(which % 2 == 0, calls, input);
}

}  // namespace
}  // namespace lrpc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lrpc::fuzz::run({data, size});
  return 0;
}
