// The strangers that a client asks when it imports from other hosts: a directory that names any hosts, and a network
// domain that binds or refuses for any reason, and answers calls with any status and any bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "directory.server.h"
#include "input.h"
#include "lrpc/detail/client/binding/remote_path.h"
#include "lrpc/server.h"
#include "network_path.server.h"
#include "replica.server.h"

namespace lrpc::fuzz {

namespace Directory = directory::Directory;
namespace NetworkPath = netpath::NetworkPath;

/// What the strangers answer. One thread at a time asks them; another one checks.
class Script {
 public:
  /// `binds_well`: every import is bound, without using the input.
  void begin(Input input, bool binds_well) {
    const std::lock_guard lock(mutex_);
    input_ = input;
    binds_well_ = binds_well;
    tried_.clear();
    bound_ = false;
    calls_ = 0;
  }
  template <class Use>
  auto use(Use&& use) {
    const std::lock_guard lock(mutex_);
    return use(input_);
  }
  [[nodiscard]] bool binds_well() {
    const std::lock_guard lock(mutex_);
    return binds_well_;
  }
  void tries(std::string host) {
    const std::lock_guard lock(mutex_);
    require(!bound_, "no further host is tried when one has been bound");
    tried_.push_back(std::move(host));
  }
  void binds() {
    const std::lock_guard lock(mutex_);
    bound_ = true;
  }
  void calls() {
    const std::lock_guard lock(mutex_);
    ++calls_;
  }
  [[nodiscard]] std::vector<std::string> tried() {
    const std::lock_guard lock(mutex_);
    return tried_;
  }
  [[nodiscard]] std::size_t calls_made() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  /// Of CallAll's last answer: what the code that made it knows.
  std::size_t replies = 0;
  std::size_t members = 0;

 private:
  std::mutex mutex_;
  Input input_{nullptr, 0};
  std::vector<std::string> tried_;
  bool binds_well_ = false;
  bool bound_ = false;
  std::size_t calls_ = 0;
};

inline Script& script() {
  static Script* const one = new Script;
  return *one;
}

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A status; more often one that has a meaning for this procedure.
inline std::uint16_t status(Input& input) {
  const std::uint8_t how = input.byte();
  if (how < 0xa0) return 0;
  if (how < 0xc0) return how % 4;
  if (how < 0xd0) return static_cast<std::uint16_t>(0x8000U | input.byte());
  if (how < 0xe0) return static_cast<std::uint16_t>(0xc000U | input.byte());
  return input.two();
}

struct HostileNetwork {
  struct Path {};

  Result<NetworkPath::BindResults, NetworkPath::Refused, NetworkPath::DeclarationWanted> Bind(
      CallContext& context, const String<255>& /*name*/, const String<255>& host, const String<255>& /*interface_name*/,
      std::uint16_t /*major*/, std::uint16_t /*minor*/, std::uint64_t /*hash*/, std::uint32_t /*wait_ms*/,
      std::uint32_t /*largest_call*/, const String<255>& /*call_name*/, std::uint32_t /*largest_return*/,
      const String<255>& /*return_name*/) {
    if (script().binds_well())
      return NetworkPath::BindResults{.path = context.grant<NetworkPath::Path>(std::make_shared<Path>()),
                                      .to_group = host.view() == "group"};
    script().tries(host.str());
    enum class Reply { bound, refused, declared };
    bool to_group = false;
    NetworkPath::Refused refused{};
    const Reply reply = script().use([&](Input& input) {
      const std::uint8_t how = input.byte();
      to_group = (how & 0x10) != 0;
      if (how % 8 < 5) return Reply::bound;
      if (how % 8 == 7) return Reply::declared;
      refused = {.code = static_cast<std::uint16_t>(how < 0xe0 ? input.byte() % 64U : input.two()),
                 .text = String<512>::cut(text_of(input.bytes(input.byte())))};
      return Reply::refused;
    });
    if (reply == Reply::refused) return raise(refused);
    if (reply == Reply::declared) return raise(NetworkPath::DeclarationWanted{});
    script().binds();
    return NetworkPath::BindResults{.path = context.grant<NetworkPath::Path>(std::make_shared<Path>()),
                                    .to_group = to_group};
  }
  Result<NetworkPath::Path, NetworkPath::Refused> BindDeclared(CallContext& context, const String<255>& /*name*/,
                                                               const String<255>& /*host*/, std::uint32_t /*wait_ms*/,
                                                               std::span<const std::byte> declaration) {
    require(text_of(declaration) == Replica::kPdl.text, "the declaration is the interface's");
    const auto code = script().use([](Input& input) { return input.byte() % 4 == 0 ? input.two() : std::uint16_t{0}; });
    if (code != 0) return raise(NetworkPath::Refused{.code = code, .text = {"no"}});
    script().binds();
    return context.grant<NetworkPath::Path>(std::make_shared<Path>());
  }
  Result<NetworkPath::CallResults> Call(CallContext& /*context*/, Path& /*path*/, std::uint16_t /*number*/,
                                        std::uint32_t /*limit_ms*/, std::span<const std::byte> /*image*/,
                                        Buffer& results) {
    script().calls();
    return script().use([&](Input& input) {
      NetworkPath::CallResults made{.status = status(input), .ended = input.byte() >= 0xf0};
      const auto bytes = input.bytes(input.byte());
      std::vector<std::byte> image(bytes.begin(), bytes.end());
      image.resize(image.size() + (input.byte() % 8 == 7 ? input.two() % (results.capacity() - 255) : 0));
      (void)results.assign(image);
      return made;
    });
  }
  Result<NetworkPath::CallAllResults> CallAll(CallContext& /*context*/, Path& /*path*/, std::uint16_t /*number*/,
                                              std::uint32_t /*limit_ms*/, std::span<const std::byte> /*image*/,
                                              Buffer& replies) {
    script().calls();
    return script().use([&](Input& input) {
      std::vector<std::byte> all;
      Script& known = script();
      known.replies = input.byte() % 6;
      known.members = input.byte();
      for (std::size_t i = 0; i < known.replies; ++i) {
        const std::uint16_t its = status(input);
        const auto image = input.bytes(input.byte() % 64);
        std::vector<std::byte> one(client::GroupReplies::kHead + image.size());
        (void)client::GroupReplies::put({input.four(), its, image}, one);
        all.insert(all.end(), one.begin(), one.end());
      }
      if (const std::uint8_t damage = input.byte(); damage >= 0xc0 && !all.empty()) {
        all[input.two() % all.size()] ^= static_cast<std::byte>(input.byte());
        known.replies = all.size() / client::GroupReplies::kHead;  // at most
      }
      (void)replies.assign(all);
      const std::uint16_t whole = input.byte() < 0xe0 ? std::uint16_t{0} : status(input);
      return NetworkPath::CallAllResults{.status = whole, .members = static_cast<std::uint16_t>(known.members)};
    });
  }
  Result<NetworkPath::ExportsResults> Exports(CallContext& /*context*/, const String<255>& /*name*/) {
    return NetworkPath::ExportsResults{};
  }
  void Groups(CallContext& /*context*/, std::uint64_t /*after*/, Buffer& /*bindings*/) {}
  void Send(CallContext& /*context*/, Path& /*path*/, std::uint16_t /*number*/, std::span<const std::byte> /*image*/) {}
};

struct HostileDirectory {
  Result<Directory::LookupResults, Directory::Refused> Lookup(CallContext& /*context*/, const String<255>& /*name*/,
                                                              const String<255>& /*interface_name*/,
                                                              std::uint16_t /*major*/, std::uint16_t /*minor*/,
                                                              std::uint64_t /*hash*/, std::uint32_t /*wait_ms*/) {
    return script().use([&](Input& input) -> Result<Directory::LookupResults, Directory::Refused> {
      const std::uint8_t how = input.byte();
      if (how % 4 == 3)
        return raise(Directory::Refused{.code = input.two(), .text = String<512>::cut(text_of(input.bytes(200)))});
      const std::string hosts = text_of(input.bytes(input.byte() % 128));
      answer = hosts;
      own = (how & 4) != 0;
      return Directory::LookupResults{.hosts = String<127>::cut(hosts), .own = own, .age_ms = input.two()};
    });
  }
  void Report(CallContext& /*context*/, const String<15>& /*host*/, bool /*reached*/) {}
  std::optional<std::string> answer;  ///< Nothing: the directory refused.
  bool own = false;
};

}  // namespace lrpc::fuzz
