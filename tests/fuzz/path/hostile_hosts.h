// Other hosts, as the client's half of a remote broker sees them. The input says what they answer; what they are sent
// is checked.
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "input.h"
#include "lrpc/netrpc/path/transport.h"
#include "messages.h"

namespace lrpc::netpath {

inline constexpr HostAddress kOwnAddress = 0x0a00'0001;
inline constexpr std::uint64_t kOwnBoot = 0x1122'3344'5566'7788;
inline constexpr HostAddress kFirstHost = 0x0a00'0002;
inline constexpr std::size_t kHosts = 4;
inline constexpr std::size_t kGroupMembers = 3;
inline constexpr HostAddress kGroupAddress = 0xef00'0001;

/// Each host has a queue of answers, so it makes no difference which thread asks first. A host with an empty queue is
/// silent. Thread-safe.
class HostileHosts final : public Transport {
 public:
  struct Answer {
    Errc outcome = Errc::ok;
    bool shaped = true;  ///< The bytes are the fields of a valid answer, not the answer itself.
    std::vector<std::byte> bytes;
  };

  void will_say(HostAddress host, Answer answer) {
    const std::lock_guard lock(mutex_);
    hosts_[host].answers.push_back(std::move(answer));
  }
  /// From now on every host answers correctly.
  void become_honest() {
    const std::lock_guard lock(mutex_);
    honest_ = true;
  }
  void will_carry(MessageSizes sizes) {
    const std::lock_guard lock(mutex_);
    sizes_ = sizes;
  }
  void begin_round() {
    const std::lock_guard lock(mutex_);
    alive_.clear();
  }
  /// Whether `host` has said since begin_round() that this binding is alive.
  [[nodiscard]] bool said_alive(HostAddress host, const BindingKey& key) {
    const std::lock_guard lock(mutex_);
    return alive_.contains({host, key.boot, key.id});
  }
  /// Whether each host was told of each key that it gave that nobody uses it any more.
  [[nodiscard]] bool all_told() {
    const std::lock_guard lock(mutex_);
    return std::ranges::all_of(hosts_, [](const auto& one) { return one.second.given == one.second.told; });
  }
  [[nodiscard]] std::size_t keys_given() {
    const std::lock_guard lock(mutex_);
    std::size_t all = 0;
    for (const auto& [host, known] : hosts_) all += known.given.size();
    return all;
  }

  // ---- Transport ----
  Errc agree(HostAddress /*host*/, MessageSizes& sizes, std::chrono::milliseconds /*timeout*/) noexcept override {
    const std::lock_guard lock(mutex_);
    sizes = sizes_;
    return Errc::ok;
  }
  std::string why(HostAddress /*host*/, Errc /*outcome*/) override { return "is not there"; }
  std::optional<Group> group(std::string_view name) override {
    if (name != "group") return std::nullopt;
    const std::lock_guard lock(mutex_);
    Group found{kGroupAddress, {}, sizes_};
    for (HostAddress i = 0; i < kGroupMembers; ++i) found.members.push_back(kFirstHost + i);
    return found;
  }
  Errc call(HostAddress host, std::uint16_t command, std::span<const std::byte> request, std::span<std::byte> reply,
            std::size_t& size, std::chrono::milliseconds timeout, const Gone& /*gone*/) noexcept override {
    fuzz::require(timeout == kNoLimit || timeout.count() > 0, "a call has time");
    const std::lock_guard lock(mutex_);
    Known& known = hosts_[host];
    fuzz::require(host >= kFirstHost && host < kFirstHost + kHosts, "only hosts are called");
    std::vector<std::byte> said;
    const Errc outcome = answer(host, known, static_cast<Command>(command), request, said);
    if (outcome != Errc::ok) return outcome;
    if (said.size() > reply.size()) return Errc::bad_message;
    std::ranges::copy(said, reply.begin());
    size = said.size();
    return Errc::ok;
  }
  Errc call_group(HostAddress group, std::uint16_t command, std::span<const std::byte> request,
                  std::span<std::byte> reply, std::size_t& size, Collation& collation,
                  std::chrono::milliseconds /*timeout*/, const Gone& /*gone*/) noexcept override {
    const std::lock_guard lock(mutex_);
    fuzz::require(group == kGroupAddress && command == static_cast<std::uint16_t>(Command::group_call),
                  "a group gets GROUP_CALLs");
    check_group_call(request);
    bool any = false;
    bool fits = true;
    for (HostAddress host = kFirstHost; host < kFirstHost + kGroupMembers; ++host) {
      std::vector<std::byte> said;
      const Errc outcome = answer(host, hosts_[host], Command::group_call, request, said);
      if (outcome == Errc::timed_out) continue;  // it stays silent until enough have answered
      collation.said(host, outcome, outcome == Errc::ok ? said : std::vector<std::byte>());
      if (outcome != Errc::ok || !collation.counts(said) || std::exchange(any, true)) continue;
      fits = said.size() <= reply.size();
      if (!fits) continue;
      std::ranges::copy(said, reply.begin());
      size = said.size();
    }
    if (!any) return Errc::peer_gone;
    return fits ? Errc::ok : Errc::bad_message;
  }

 private:
  struct ByFields {
    bool operator()(const BindingKey& a, const BindingKey& b) const {
      return std::tie(a.boot, a.id, a.nonce) < std::tie(b.boot, b.id, b.nonce);
    }
  };
  using Keys = std::set<BindingKey, ByFields>;
  struct Known {
    std::deque<Answer> answers;
    Keys given;  ///< In answers to BINDs.
    Keys ended;  ///< Keys whose bindings the host has said to have ended.
    Keys twice;  ///< Given more than once: perhaps only one of several bindings has ended.
    Keys told;   ///< Keys of which it was told that nobody uses them.
    [[nodiscard]] bool over(const BindingKey& key) const { return ended.contains(key) && !twice.contains(key); }
  };

  /// The host's answer to one command. Call it with the lock held.
  Errc answer(HostAddress host, Known& known, Command command, std::span<const std::byte> request,
              std::vector<std::byte>& said) {
    check(known, command, request);
    Answer next{.outcome = honest_ ? Errc::ok : Errc::timed_out, .bytes = {}};
    if (!honest_ && !known.answers.empty()) {
      next = std::move(known.answers.front());
      known.answers.pop_front();
    }
    // After host_unreachable the client pauses and tries the CALL again. Avoided here.
    if (next.outcome == Errc::host_unreachable && command == Command::call) next.outcome = Errc::peer_gone;
    constexpr Errc kRefusals[] = {Errc::ok, Errc::not_permitted, Errc::bad_message};
    if (command == Command::unbind && std::ranges::count(kRefusals, next.outcome) != 0)
      known.told.insert(*decode_unbind(request));
    if (next.outcome != Errc::ok) return next.outcome;
    said = next.shaped ? shaped(command, request, std::move(next.bytes)) : std::move(next.bytes);
    note(host, known, command, request, said);
    return Errc::ok;
  }

  static std::vector<std::byte> owned(const std::string& text) {
    const auto bytes = bytes_of(text);
    return {bytes.begin(), bytes.end()};
  }
  std::vector<std::byte> shaped(Command command, std::span<const std::byte> request, std::vector<std::byte> fields) {
    fuzz::Input input(reinterpret_cast<const std::uint8_t*>(fields.data()), fields.size());
    switch (command) {
      case Command::bind: {
        BindAnswer made;
        // Few boot ids, so that some hosts have the same.
        if (input.byte() % 4 != 0) {
          made.key = {1 + input.byte() % 4U, ++last_id_, {}};
          made.key.nonce.fill(input.byte());
        } else {
          made.code = static_cast<Errc>(input.two());
          const auto text = input.rest();
          made.text.assign(reinterpret_cast<const char*>(text.data()), text.size());
        }
        return owned(encode(made));
      }
      case Command::call:
      case Command::group_call: {
        const std::uint16_t status = input.two();
        const bool ended = input.byte() % 4 == 1;
        const auto image = input.rest();
        std::vector<std::byte> made(kReplyPrologue);
        encode_reply_prologue(status, ended, image.size(), std::span(made).first<kReplyPrologue>());
        made.insert(made.end(), image.begin(), image.end());
        return made;
      }
      case Command::ping: {
        PingAnswer made{.server_boot = 1 + input.byte() % 4U, .alive = {}};
        const auto asked = decode_ping(request);
        for (std::size_t i = 0; asked && i < asked->bindings.size(); ++i) made.alive.push_back(input.byte() % 4 != 3);
        return owned(encode(made));
      }
      default: return {};
    }
  }

  void check(const Known& known, Command command, std::span<const std::byte> request) const {
    switch (command) {
      case Command::bind: {
        const auto bind = decode_bind(request);
        fuzz::require(bind && bind->client_boot == kOwnBoot && shim::valid_name(bind->name), "a BIND is right");
        return;
      }
      case Command::call: {
        const auto call = decode_call(request);
        fuzz::require(call && known.given.contains(call->prologue.key), "a host is called with its own keys");
        fuzz::require(!known.over(call->prologue.key), "a binding that has ended is called no more");
        return;
      }
      case Command::unbind: {
        const auto key = decode_unbind(request);
        fuzz::require(key && known.given.contains(*key), "a host is told about its own keys");
        return;
      }
      case Command::ping: {
        const auto ping = decode_ping(request);
        fuzz::require(ping && ping->client_boot == kOwnBoot && !ping->bindings.empty(), "a PING is right");
        for (const std::uint64_t id : ping->bindings)
          fuzz::require(std::ranges::any_of(known.given, [id](const BindingKey& key) { return key.id == id; }),
                        "a host is asked about its own bindings");
        return;
      }
      case Command::group_call: return;  // checked by check_group_call()
    }
    fuzz::require(false, "a command is one of the protocol's");
  }

  /// Each member gets its own key, or none. No two keys have the same boot id, so no member can pass off another's key
  /// as its own.
  void check_group_call(std::span<const std::byte> request) {
    std::set<std::uint64_t> boots;
    for (HostAddress host = kFirstHost; host < kFirstHost + kGroupMembers; ++host) {
      const std::size_t at = group_prologue(host - kFirstHost);
      fuzz::require(request.size() >= at + kKey, "each member has a key");
      const auto key = decode_unbind(request.subspan(at, kKey));
      if (*key == BindingKey()) continue;
      const Known& known = hosts_[host];
      fuzz::require(known.given.contains(*key), "a member is called with its own key");
      fuzz::require(!known.over(*key), "a member is called no more by a key that has ended");
      fuzz::require(boots.insert(key->boot).second, "no two members have one boot id");
    }
  }

  /// Records the consequences of the host's answer.
  void note(HostAddress host, Known& known, Command command, std::span<const std::byte> request,
            std::span<const std::byte> said) {
    switch (command) {
      case Command::bind: {
        const auto bound = decode_bind_answer(said);
        if (!bound || bound->code != Errc::ok) return;
        if (!known.given.insert(bound->key).second) known.twice.insert(bound->key);
        known.told.erase(bound->key);                                   // it may be given again
        if (bound->key == BindingKey()) known.told.insert(bound->key);  // the same as no key
        known.ended.erase(bound->key);
        return;
      }
      case Command::call: {
        const auto returned = decode_call_answer(said);
        if (returned && returned->ended) known.ended.insert(decode_call(request)->prologue.key);
        return;
      }
      case Command::group_call: {
        const auto returned = decode_call_answer(said);
        if (!returned || !returned->ended) return;
        known.ended.insert(*decode_unbind(request.subspan(group_prologue(host - kFirstHost), kKey)));
        return;
      }
      case Command::unbind: return;
      case Command::ping: {
        const auto asked = decode_ping(request);
        const auto answered = decode_ping_answer(said);
        for (std::size_t i = 0; answered && i < std::min(asked->bindings.size(), answered->alive.size()); ++i)
          if (answered->alive[i]) alive_.insert({host, answered->server_boot, asked->bindings[i]});
        return;
      }
    }
  }

  std::mutex mutex_;
  bool honest_ = false;
  std::uint64_t last_id_ = 0;
  MessageSizes sizes_{kMaxCallMessage, kReplyPrologue + kMaxImage};
  std::map<HostAddress, Known> hosts_;
  std::set<std::tuple<HostAddress, std::uint64_t, std::uint64_t>> alive_;
};

}  // namespace lrpc::netpath
