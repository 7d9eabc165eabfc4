// A client's host and the members of a group in this process, joined by a fake network.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "remote_fixture.h"
#include "replica.client.h"
#include "replica.server.h"

namespace testing_netpath {

class ReplicaService {
 public:
  using Tally = std::atomic<std::uint32_t>;
  Replica::Tally Begin(lrpc::CallContext& call, std::uint32_t first) {
    ++calls;
    return call.grant<Replica::Tally>(std::make_shared<Tally>(first));
  }
  std::uint32_t Count(lrpc::CallContext&, Tally& tally) {
    ++calls;
    return ++tally;
  }
  void Forget(lrpc::CallContext&, const std::shared_ptr<Tally>&) { ++calls; }
  std::int32_t Add(lrpc::CallContext&, std::int32_t a, std::int32_t b) {
    ++calls;
    return a + b;
  }
  lrpc::Result<std::uint32_t, Replica::TooBig> Double(lrpc::CallContext&, std::uint32_t value) {
    if (value > 100) return lrpc::raise(Replica::TooBig{.limit = 100, .what = {"values"}});
    return 2 * value;
  }
  Replica::GreetResults Greet(lrpc::CallContext&, const lrpc::String<100>& name) {
    return {.greeting = lrpc::String<200>::cut("hello " + name.str()), .calls = ++calls};
  }
  lrpc::Status Refuse(lrpc::CallContext&) {
    if (willing) return {};
    return lrpc::Error{Errc::not_permitted, "not today"};
  }
  lrpc::String<16000> Large(lrpc::CallContext&, std::uint32_t size) {
    return lrpc::String<16000>::cut(std::string(size, 'x'));
  }
  lrpc::Status Fill(lrpc::CallContext&, std::uint32_t size, lrpc::Buffer& data) const {
    if (full || !data.resize(size)) return Errc::limit_reached;
    std::ranges::fill(data.contents(), static_cast<std::byte>(member));
    return {};
  }
  std::uint8_t Halves(lrpc::CallContext& call, std::uint32_t size, lrpc::Buffer& low, lrpc::Buffer& high) const {
    (void)Fill(call, size / 2, low);
    (void)Fill(call, size - size / 2, high);
    return member;
  }
  std::uint8_t Sign(lrpc::CallContext&, std::uint32_t& count, lrpc::String<20>& mark, lrpc::Buffer& data,
                    std::span<const std::byte> other) const {
    count += member;
    mark = lrpc::String<20>::cut(mark.str() + std::to_string(member));
    const std::size_t held = data.size();
    EXPECT_TRUE(data.resize(held + other.size()));
    std::ranges::copy(other, data.contents().begin() + static_cast<std::ptrdiff_t>(held));
    return member;
  }
  lrpc::Status Increase(lrpc::CallContext&, std::uint32_t& count) const {
    if (full) return Errc::limit_reached;
    ++count;
    return {};
  }
  void Note(lrpc::CallContext&, std::uint32_t value) { noted = value; }

  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint32_t> noted{0};
  std::atomic<bool> willing{false};
  std::atomic<bool> full{false};
  std::uint8_t member = 0;
};

/// A client's host, 10.0.0.1, and three members, each with a nameserver, a broker and a server.
class Groups : public testing::Test {
 protected:
  static constexpr std::size_t kMembers = 3;
  struct Member {
    std::unique_ptr<Host> host;
    ReplicaService service;
    std::unique_ptr<lrpc::Server> server;
  };

  Groups() {
    here_ = std::make_unique<Host>(network_, kHere, directory_ / "here.sock");
    std::vector<HostAddress> all;
    for (std::size_t i = 0; i < kMembers; ++i) {
      members_[i].host = std::make_unique<Host>(network_, address(i), directory_ / (std::to_string(i) + ".sock"));
      members_[i].host->start_broker(there_options());
      serve(i);
      all.push_back(address(i));
    }
    here_->wire().set_members(all);
    here_->start_broker({.own_address = kHere, .keepalive = kKeepalive});
  }
  ~Groups() override {
    for (Member& member : members_) member.server.reset();
    here_.reset();
    for (Member& member : members_) member.host.reset();
  }

  static HostAddress address(std::size_t member) { return kThere + static_cast<HostAddress>(member); }
  static std::string name(std::size_t member) { return lrpc::GroupMember{address(member)}.str(); }
  static BrokerOptions there_options() {
    BrokerOptions options;
    options.exported = [](std::string_view) { return true; };
    options.keepalive = kKeepalive;
    return options;
  }
  void serve(std::size_t member) {
    members_[member].service.member = static_cast<std::uint8_t>(member);
    members_[member].server =
        std::make_unique<lrpc::Server>(lrpc::ServerOptions{.nameserver = members_[member].host->socket()});
    EXPECT_TRUE(Replica::export_to(*members_[member].server, "files", members_[member].service));
  }
  [[nodiscard]] lrpc::Result<Replica::Client> import(const std::string& what = "files@replicas") const {
    return Replica::Client::import(what, {.nameserver = here_->socket()});
  }
  /// The answer of each member to Add(20, 22).
  static std::map<std::string, std::string> added(Replica::Client& client) {
    std::map<std::string, std::string> said;
    const auto replies = client.all().Add(20, 22);
    if (!replies) return {{"", std::string(describe(replies.code()))}};
    for (const auto& [who, sum] : *replies)
      EXPECT_TRUE(said.emplace(who.str(), sum ? std::to_string(*sum) : std::string(describe(sum.code()))).second);
    return said;
  }
  static std::string failure(Errc code) { return std::string(describe(code)); }

  Network network_;
  testing_lrpc::TemporaryDirectory directory_;
  std::unique_ptr<Host> here_;
  std::array<Member, kMembers> members_;
};

}  // namespace testing_netpath
