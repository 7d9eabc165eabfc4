// A group of hosts that exchange messages through PSYNC, and check the order in which they receive them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "netrpc/protocols/psync/protocol.h"
#include "netrpc/protocols/psync/psync.h"
#include "netrpc/sim/devices.h"
#include "netrpc/sim/test_hosts.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc::psync {

inline constexpr HostAddress kGroup{0xef000001};

/// What a talker checks about the messages that it receives.
enum class Expects {
  all,    ///< It receives every message of each host, in context order.
  order,  ///< Messages may be missing after a crash or partition; the rest is in context order.
  nothing,
};

/// Writes into each message how many messages of each host it has seen, its own included, and the latest messages known
/// to precede it. The receivers check the order by that.
class Talker final : public Protocol {
 public:
  Talker(Host& host, std::size_t all) : Protocol(host, "talker"), seen(all) {}
  void demux(Session& lower, Message message) noexcept override {
    const std::size_t from = index_of(lower.peer());
    std::istringstream text(text_of(message));
    for (std::size_t i = 0; i < seen.size(); ++i) {
      int said = 0;
      text >> said;
      EXPECT_TRUE(expects != Expects::all || (i == from ? said == seen[from] + 1 : seen[i] >= said))
          << host().name() << ": " << text_of(message);
    }
    if (expects != Expects::nothing) expect_new(from, text);
    ++seen[from];
    ++received;
    if (given) given(lower);
    if (answers && received % 10 == 0) (void)push(lower);  // with at most six members the exchange dies out
  }
  /// A refused message is not counted.
  Errc push(Session& session) noexcept {
    const std::size_t self = index_of(host().address());
    int& mine = known_[{self, host().boot_id()}];
    ++seen[self], ++mine;
    std::ostringstream text;
    for (const int one : seen) text << one << ' ';
    text << host().boot_id();
    for (const auto& [life, number] : known_) text << ' ' << life.first << ' ' << life.second << ' ' << number;
    const std::string bytes = text.str() + std::string(padding, ' ');
    const Errc outcome = session.push(Message::copy_of(host().pool(), std::as_bytes(std::span(bytes))));
    if (outcome != Errc::ok) --seen[self], --mine;
    return outcome;
  }
  std::vector<int> seen;
  int received = 0;
  std::function<void(Session&)> given{};
  bool answers = false;
  std::size_t padding = 0;  ///< Makes each message that it pushes longer by so many bytes.
  Expects expects = Expects::all;

 private:
  /// One life of a host. Its messages are numbered from 1.
  using Life = std::pair<std::size_t, BootId>;

  static std::size_t index_of(HostAddress host) { return host.value - 0x0a000001; }
  /// Checks that no message arrives after one that follows it, even if this talker began late.
  void expect_new(std::size_t from, std::istream& text) {
    Life life{from, 0};
    text >> life.second;
    const int before = known_[life];
    int number = 0;
    for (Life one; text >> one.first >> one.second >> number;) known_[one] = std::max(known_[one], number);
    EXPECT_GT(known_[life], before) << host().name() << " is given a message of host " << from
                                    << " after one that follows it";
  }
  std::map<Life, int> known_;  ///< Per life, the last message that was pushed or received here, or precedes one.
};

/// A member whose packets the test makes up. It sends them to one other member, and its answers to any that asks.
class Puppet final : public Protocol {
 public:
  Puppet(Host& host, Protocol& below, HostAddress to) : Protocol(host, "puppet"), below_(below) {
    ParticipantSet participants = below_participants();
    EXPECT_TRUE(below_.open_enable(*this, participants));
    participants.remote.host = to;
    session_ = *below_.open(*this, participants);
  }
  Errc open_done(Session& /*lower*/, const ParticipantSet& /*participants*/) noexcept override { return Errc::ok; }
  void demux(Session& lower, Message packet) noexcept override {
    std::array<std::byte, Header::kMost> bytes;
    const auto header = Header::decode(std::span(bytes).first(packet.copy_to(bytes)));
    if (header && header->type == Type::gone) gone.assign(header->all().begin(), header->all().end());
    if (header && header->type == Type::request) wanted.assign(header->all().begin(), header->all().end());
    if (!header || !header->is_question()) return;
    ++questions;
    number = header->id.sequence;
    if (answers) push(Type::status, {host().address(), life, number}, {}, false, &lower);
  }
  /// The caller is inside the monitor. `flags`: what the header's flags are. Without `to`: to its one member.
  void push(Type type, const Mark& id, const std::vector<Mark>& marks = {}, bool flags = false, Session* to = nullptr) {
    Header header;
    header.type = type;
    header.ask = header.changed = flags;
    header.protocol = protocol_numbers::kFirstOfTests;
    header.group = kGroup;
    header.id = id;
    for (const Mark& mark : marks) header.add(mark);
    Message packet(host().pool());
    header.encode(packet.push(header.size()));
    EXPECT_EQ((to != nullptr ? *to : *session_).push(std::move(packet)), Errc::ok);
  }
  BootId life = 7;      ///< The life that it answers with,
  bool answers = true;  ///< if it answers questions.
  std::size_t questions = 0;
  std::uint32_t number = 0;    ///< Of the last question that it received.
  std::vector<Mark> gone{};    ///< From the last GONE packet that it received.
  std::vector<Mark> wanted{};  ///< From the last REQUEST packet that it received.

 private:
  [[nodiscard]] static ParticipantSet below_participants() { return SimHosts::anyone(protocol_numbers::kPsync); }
  Protocol& below_;
  SessionRef session_;
};

struct Group {
  /// `without`: the number of members that do not run PSYNC. They are the last ones. `medium`: IP or Ethernet.
  explicit Group(std::size_t count, SimOptions options = {}, PsyncOptions psync = {}, std::size_t without = 0,
                 Medium medium = Medium::ip)
      : net(count, 1, options), on(medium) {
    members.resize(count);
    for (std::size_t i = 0; i + without < count; ++i)
      net[i].on_boot([this, i, count, psync](SimHost& host) { boot(i, count, psync, host); });
  }
  ~Group() {
    for (Member& one : members) one.session = {};
  }
  struct Member {
    Psync* protocol = nullptr;
    Talker* talker = nullptr;
    SessionRef session;
  };
  [[nodiscard]] Protocol& below(SimHost& host) const { return on == Medium::ip ? host.ip() : host.ethernet(); }
  void boot(std::size_t at, std::size_t count, const PsyncOptions& options, SimHost& host) {
    Member& one = members[at];
    one.protocol = &host.add<Psync>("psync", below(host), options);
    EXPECT_TRUE(one.protocol->start());
    one.talker = &host.add<Talker>(count);
    std::vector<HostAddress> hosts;
    for (std::size_t i = 0; i < count; ++i) hosts.push_back(net.address(i));
    EXPECT_TRUE(host.host().groups().set(kGroup, hosts));
    auto session = one.protocol->open(*one.talker, to_group());
    ASSERT_TRUE(session) << session.error().message();
    one.session = *session;
  }
  [[nodiscard]] static ParticipantSet to_group() {
    ParticipantSet participants = SimHosts::anyone();
    participants.remote.host = kGroup;
    return participants;
  }
  /// Lets the conversation of `who` go, and opens it again.
  void open_again(std::size_t who) {
    const Shepherd inside(net[who].monitor());
    Member& one = members[who];
    one.session = {};
    one.session = *one.protocol->open(*one.talker, to_group());
  }
  Errc push(std::size_t who) {
    const Shepherd inside(net[who].monitor());
    return members[who].talker->push(*members[who].session);
  }
  void crash(std::size_t who) {
    members[who].session = {};
    net[who].crash();
  }
  /// Replaces a member that does not run PSYNC. The puppet sends to the first member.
  Puppet& puppet(std::size_t at) {
    const Shepherd inside(net[at].monitor());
    return net[at].add<Puppet>(below(net[at]), net.address(0));
  }
  void push(Puppet& puppet, Type type, const Mark& id, const std::vector<Mark>& marks = {}) {
    {
      const Shepherd inside(puppet.host().monitor());
      puppet.push(type, id, marks);
    }
    net.world.run_for(std::chrono::milliseconds(1));
  }
  /// Tells the first member the puppet's life.
  void introduce(Puppet& puppet) { push(puppet, Type::status, {puppet.host().address(), puppet.life, 0}); }
  /// Tells the first member how many messages the puppet has pushed.
  void tell_pushed(Puppet& puppet, std::uint32_t count) {
    const Mark self{puppet.host().address(), puppet.life, 0};
    push(puppet, Type::status, self, {{self.host, self.life, count}});
  }
  [[nodiscard]] control::Statistics statistics(std::size_t who) {
    return test::asked<control::Statistics>(*members[who].protocol);
  }
  void expect_all_have(const std::vector<int>& pushed) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (!net[i].up()) continue;
      EXPECT_EQ(members[i].talker->seen, pushed) << i;
      EXPECT_EQ(statistics(i).state, 0U) << i;
    }
    const std::uint64_t sent = statistics(0).sent;
    net.world.run_for(std::chrono::seconds(10));
    EXPECT_EQ(statistics(0).sent, sent);  // once all members have all messages, none sends anything
  }
  SimHosts net;
  const Medium on;  ///< What is below PSYNC.
  std::vector<Member> members;
};

}  // namespace lrpc::netrpc::psync
