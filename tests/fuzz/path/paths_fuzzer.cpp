// Attacks the client's half of a remote broker from both sides. Clients of this machine import, call and end; other
// hosts answer BINDs, CALLs, GROUP_CALLs and PINGs as the input says. What must hold: a host is called with the keys
// that it gave, and with none that has ended. No host's answer ends another host's bindings. What clients, and programs
// that list groups, are told is printable and within its bounds. A group's replies name its members, each once. Nothing
// is left when the clients have ended, and each host is told so.
#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "caller.h"
#include "hostile_hosts.h"
#include "input.h"
#include "lrpc/detail/client/binding/remote_path.h"
#include "lrpc/detail/server/run.h"
#include "lrpc/detail/shim/system/little_endian.h"
#include "path_service.h"

namespace lrpc::netpath {
namespace {

using fuzz::Caller;
using fuzz::Input;
using fuzz::require;

constexpr std::size_t kClients = 3;
constexpr std::size_t kMostPaths = 10;

bool printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

struct Client {
  std::unique_ptr<Caller> caller;
  uid_t user = 0;
  NetworkPath::Path handle{};
  bool to_group = false;
};

class Attack {
 public:
  Attack() : service_(hosts_, options_, kOwnBoot) {
    for (std::size_t i = 0; i < kClients; ++i) {
      clients_[i].user = i == 0 ? 0 : 1000;
      come(clients_[i]);
    }
  }

  void step(Input& input) {
    switch (input.byte() % 12) {
      case 0:
      case 1:
      case 2: return say(input);
      case 3: return bind(client(input), input);
      case 4: return call(client(input), input);
      case 5: return call_all(client(input), input);
      case 6: return send(client(input), input);
      case 7: return ping();
      case 8: return service_.rebind((input.byte() & 1) != 0);
      case 9: {
        now_ += std::chrono::milliseconds(input.byte() * 97U);
        service_.retry_unbinds(now_);
        return service_.send_unbinds();
      }
      case 10: return list(client(input));
      default: return come(client(input));
    }
  }

  void finish() {
    for (Client& one : clients_) one.caller.reset();
    require(service_.paths() == 0 && service_.group_bindings(std::nullopt).empty(), "no path outlives its client");
    // A host is told only while it may remember the binding, and a bounded number of notices is kept.
    if (now_ - PathService::Clock::time_point() >= options_.forget || hosts_.keys_given() > kMostPaths) return;
    hosts_.become_honest();
    service_.retry_unbinds(now_);
    service_.send_unbinds();
    require(!service_.any_unbinds() && hosts_.all_told(), "each host is told that its bindings are used no more");
  }

 private:
  Client& client(Input& input) { return clients_[input.byte() % kClients]; }

  /// A client ends, and a new one takes its place.
  void come(Client& client) {
    client.caller.reset();
    client = {std::make_unique<Caller>(NetworkPath::kPdl, ++last_binding_, client.user), client.user, {}, false};
  }

  void say(Input& input) {
    constexpr Errc kOutcomes[] = {Errc::ok,
                                  Errc::ok,
                                  Errc::ok,
                                  Errc::ok,
                                  Errc::ok,
                                  Errc::ok,
                                  Errc::ok,
                                  Errc::timed_out,
                                  Errc::peer_gone,
                                  Errc::call_lost,
                                  Errc::limit_reached,
                                  Errc::not_permitted,
                                  Errc::system_error,
                                  Errc::bad_message,
                                  Errc::message_too_long,
                                  Errc::host_unreachable};
    const std::uint8_t how = input.byte();
    HostileHosts::Answer answer;
    answer.outcome = kOutcomes[how % std::size(kOutcomes)];
    answer.shaped = (how & 0x10) == 0;
    const HostAddress host = kFirstHost + (how >> 5) % kHosts;
    const auto bytes = input.bytes(input.byte());
    answer.bytes.assign(bytes.begin(), bytes.end());
    if ((how & 0x30) == 0x20) answer.bytes.resize(answer.bytes.size() + input.byte() * 80U);  // a long image
    hosts_.will_say(host, std::move(answer));
  }

  static std::string text(Input& input) {
    const auto bytes = input.bytes(input.byte() % 24);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  void bind(Client& client, Input& input) {
    constexpr const char* kHostNames[] = {"10.0.0.2", "10.0.0.3",  "10.0.0.4", "10.0.0.5", "group",    "group",
                                          "10.0.0.1", "239.1.1.1", "group",    "fe80::1",  "10.0.0.2", "10.0.0.3"};
    const std::uint8_t how = input.byte();
    const std::string host = kHostNames[how % std::size(kHostNames)];
    const std::string name = how < 0xd0 ? "files" : text(input);
    const std::uint32_t largest_call = input.byte() * 70U;
    const std::uint32_t largest_return = input.byte() * 70U;
    hosts_.will_carry({input.byte() * 100U, input.byte() * 100U});
    // A bind that waits for a name is abandoned beforehand: otherwise it would pause here.
    const std::uint32_t wait_ms = input.byte() % 4 == 0 ? input.byte() : 0;
    client.caller->abandon(wait_ms != 0);
    const bool had_one = bool(client.handle);
    const auto bound = service_.Bind(client.caller->context(), name, host, "Files", 1, 0, 7, wait_ms, largest_call,
                                     "Read", largest_return, "Read");
    client.caller->abandon(false);
    require(service_.paths() <= kMostPaths, "there are no more paths than there may be");
    if (!bound) {
      const auto* const refused = bound.raised<NetworkPath::Refused>();
      require(refused != nullptr, "a refusal says why");
      require(refused->code != 0 && printable(refused->text.view()), "a reason is printable");
      return;
    }
    require(!had_one, "a client has one remote binding");
    require(bound->to_group == (host == "group") && bool(bound->path), "a path leads where it was to");
    client.handle = bound->path;
    client.to_group = bound->to_group;
  }

  /// Memory of exactly this size, so that a sanitizer sees every access outside of it.
  struct Room {
    explicit Room(std::size_t size) : memory(size), buffer(memory) {}
    std::vector<std::byte> memory;
    Buffer buffer;
  };

  static std::vector<std::byte> image(Input& input) {
    const auto bytes = input.bytes(input.byte() % 32);
    std::vector<std::byte> made(bytes.begin(), bytes.end());
    made.resize(made.size() + (input.byte() % 8 == 7 ? kMaxImage - made.size() : 0));
    return made;
  }

  void call(Client& client, Input& input) {
    const auto path = client.caller->object<PathService::Path>(client.handle);
    if (path == nullptr) return;
    const std::vector<std::byte> arguments = image(input);
    const std::uint32_t limit_ms = input.byte() % 4 == 0 ? 1000 : 0;
    Room room(kMaxImage);
    const bool ended = path->has_ended();
    const auto done = service_.Call(client.caller->context(), *path, input.byte(), limit_ms, arguments, room.buffer);
    require(bool(done) && room.buffer.size() <= kMaxImage, "a call returns");
    if (client.to_group) return require(!done->ended, "a path to a group ends with its client");
    require(!ended || (done->ended && done->status == server::failed(Errc::binding_revoked)),
            "a path that has ended stays so");
    require(done->ended == path->has_ended(), "a client is told that its path has ended");
  }

  void call_all(Client& client, Input& input) {
    const auto path = client.caller->object<PathService::Path>(client.handle);
    if (path == nullptr) return;
    const std::vector<std::byte> arguments = image(input);
    Room room(NetworkPath::layout::kCallAll_replies.bound);
    const auto done = service_.CallAll(client.caller->context(), *path, input.byte(), 0, arguments, room.buffer);
    require(bool(done), "a call returns");
    if (!client.to_group) {
      require(done->status != 0 && done->members == 0 && room.buffer.size() == 0, "one host is no group");
      return;
    }
    require(done->members == kGroupMembers, "a group has its members");
    std::unique_ptr<std::byte[]> memory(new std::byte[room.buffer.size()]);
    std::ranges::copy(room.buffer.contents(), memory.get());
    client::GroupReplies replies(done->status, done->members, std::move(memory), room.buffer.size());
    std::set<std::uint32_t> seen;
    while (const auto one = replies.next()) {
      require(one->host >= kFirstHost && one->host < kFirstHost + kGroupMembers, "members reply");
      require(seen.insert(one->host).second, "each of them once");
      require(one->image.size() <= kMaxImage, "a reply has its bound");
    }
    require(!replies.damaged(), "replies lie one behind the other");
  }

  void send(Client& client, Input& input) {
    const auto path = client.caller->object<PathService::Path>(client.handle);
    if (path != nullptr) service_.Send(client.caller->context(), *path, input.byte(), image(input));
  }

  /// Sends keepalives, and checks what the broker does about their outcomes.
  void ping() {
    hosts_.begin_round();
    std::set<std::uint64_t> ended_before;
    for (Client& one : clients_)
      if (const auto path = one.caller->object<PathService::Path>(one.handle); path != nullptr && path->has_ended())
        ended_before.insert(one.caller->id());
    std::mutex mutex;
    std::vector<std::uint64_t> ended;
    service_.on_ended = [&](std::uint64_t binding) {
      const std::lock_guard lock(mutex);
      ended.push_back(binding);
    };
    service_.ping();
    for (const std::uint64_t binding : ended) {
      const auto found = std::ranges::find_if(clients_, [&](const Client& one) { return one.caller->id() == binding; });
      require(found != clients_.end(), "what ends is a client's binding");
      const auto path = found->caller->object<PathService::Path>(found->handle);
      require(path != nullptr && path->has_ended() && !found->to_group, "it has a path to a host, which has ended");
      require(ended_before.contains(binding) || !hosts_.said_alive(path->host, path->key()),
              "a binding does not end that its host says to be alive");
      come(*found);
    }
  }

  void list(Client& client) {
    std::uint64_t after = 0;
    for (;;) {
      Room room(NetworkPath::layout::kGroups_bindings.bound);
      service_.Groups(client.caller->context(), after, room.buffer);
      shim::ByteReader reader(room.buffer.contents());
      if (room.buffer.size() == 0) return;
      while (reader.left() != 0) {
        const auto number = reader.number<std::uint64_t>();
        require(number > after, "bindings are listed in their order");
        after = number;
        const auto user = reader.number<std::uint32_t>();
        require(client.user == 0 || user == client.user, "a user is told of its own bindings");
        const auto said = [&reader] {
          const auto bytes = reader.take(reader.number<std::uint8_t>());
          return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        };
        require(said() == "group" && printable(said()), "a group and a name");
        const auto members = reader.number<std::uint8_t>();
        require(members == kGroupMembers, "a group has its members");
        for (int i = 0; i < members; ++i) {
          require(reader.number<std::uint32_t>() == kFirstHost + static_cast<HostAddress>(i), "in their order");
          const bool bound = reader.number<std::uint8_t>() == 1;
          const auto why = said();
          require(printable(why) && why.size() <= 200 && (!bound || why.empty()), "why it is not bound");
        }
        require(reader.good(), "a list is whole");
      }
    }
  }

  PathService::Clock::time_point now_{};
  const BrokerOptions options_{.own_address = kOwnAddress,
                               .max_calls_to_host = 4,
                               .max_paths = kMostPaths,
                               .now = [this] { return now_; },
                               .boot_id = kOwnBoot};
  HostileHosts hosts_;
  PathService service_;
  std::uint64_t last_binding_ = 0;
  std::array<Client, kClients> clients_;
};

}  // namespace
}  // namespace lrpc::netpath

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lrpc::fuzz::Input input(data, size);
  lrpc::netpath::Attack attack;
  for (int i = 0; i < 64 && input.more(); ++i) attack.step(input);
  attack.finish();
  return 0;
}
