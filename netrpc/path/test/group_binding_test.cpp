// name@group: bindings to several hosts at once, their calls, and each member's answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>

#include "group_fixture.h"
#include "wide.client.h"

namespace testing_netpath {
namespace {

TEST_F(Groups, are_bound_and_called_as_one) {
  auto client = import();
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_EQ(*client->Add(40, 2), 42);
  EXPECT_EQ(added(*client), (std::map<std::string, std::string>{{name(0), "42"}, {name(1), "42"}, {name(2), "42"}}));
  EXPECT_EQ(here_->broker().statistics().paths, kMembers);
  const auto greeted = client->Greet("group");
  ASSERT_TRUE(greeted);
  EXPECT_EQ(greeted->greeting.view(), "hello group");
  const auto started = client->start().Add(1, 2).finish();
  ASSERT_TRUE(started);
  EXPECT_EQ(*started, 3);
}

TEST_F(Groups, errors_that_are_raised_are_answers) {
  auto client = import();
  ASSERT_TRUE(client);
  here_->wire().needed = kMembers;
  const auto doubled = client->Double(101);
  ASSERT_NE(doubled.raised<Replica::TooBig>(), nullptr) << doubled.error().message();
  const auto all = client->all().Double(101);
  ASSERT_TRUE(all) << all.error().message();
  EXPECT_EQ(all->size(), kMembers);
  for (const auto& [who, result] : *all) {
    const auto* const big = result.raised<Replica::TooBig>();
    ASSERT_NE(big, nullptr) << who.str();
    EXPECT_EQ(big->limit, 100U);
    EXPECT_EQ(big->what.view(), "values");
  }
}

TEST_F(Groups, an_error_that_is_not_raised_is_no_answer) {
  auto client = import();
  ASSERT_TRUE(client);
  const auto refused = client->Refuse();
  EXPECT_EQ(refused.code(), Errc::not_permitted);
  EXPECT_EQ(refused.error().text, "not today");
  EXPECT_EQ(client->all().Refuse().code(), Errc::not_permitted);
  EXPECT_EQ(client->all().Refuse().error().text, "not today");
  members_[1].service.willing = true;
  EXPECT_TRUE(client->Refuse());
  const auto all = client->all().Refuse();
  ASSERT_TRUE(all) << all.error().message();
  EXPECT_EQ(all->size(), kMembers);
  for (const auto& [who, result] : *all) {
    EXPECT_EQ(bool(result), who.str() == name(1));
    EXPECT_TRUE(result || result.error().text == "not today") << who.str();
  }
  here_->wire().needed = 2;
  EXPECT_EQ(client->Refuse().code(), Errc::not_permitted);
}

TEST_F(Groups, replies_that_are_too_long_for_the_way_are_said_to_be_so) {
  auto client = import();
  ASSERT_TRUE(client);
  network_.replies_too_long_of = address(1);
  EXPECT_EQ(added(*client), (std::map<std::string, std::string>{
                                {name(0), "42"}, {name(1), failure(Errc::call_lost)}, {name(2), "42"}}));
  EXPECT_EQ(*client->Add(20, 22), 42);
}

TEST_F(Groups, replies_for_which_there_is_no_room_are_said_to_be_so) {
  auto client = import();
  ASSERT_TRUE(client);
  const auto all = client->all().Large(15'990);
  ASSERT_TRUE(all);
  std::size_t fit = 0;
  for (const auto& [who, text] : *all) {
    if (text)
      EXPECT_EQ(text->view().size(), 15'990U);
    else
      EXPECT_EQ(text.code(), Errc::limit_reached);
    if (text) ++fit;
  }
  EXPECT_EQ(all->size(), kMembers);
  EXPECT_EQ(all->members, kMembers);
  EXPECT_EQ(fit, 2U);
}

TEST_F(Groups, results_that_are_not_values_are_the_first_members) {
  auto client = import();
  ASSERT_TRUE(client);
  std::array<std::byte, 1000> room;
  lrpc::Buffer data(room);
  EXPECT_TRUE(client->Fill(700, data));
  EXPECT_EQ(data.size(), 700U);
}

TEST_F(Groups, each_members_bytes_are_given_with_its_reply) {
  auto client = import();
  ASSERT_TRUE(client);
  here_->wire().needed = kMembers;
  const auto filled = client->all().Fill(700);
  ASSERT_TRUE(filled) << filled.error().message();
  std::size_t members = 0;
  for (const auto& [who, result, data] : *filled) {
    EXPECT_TRUE(result) << result.error().message();
    ASSERT_EQ(data.size(), 700U);
    members |= std::size_t{1} << static_cast<unsigned>(data[0]);
    EXPECT_EQ(who.str(), name(static_cast<std::size_t>(data[0])));
  }
  EXPECT_EQ(members, 0b111U);
  const auto halves = client->all().Halves(5);
  ASSERT_TRUE(halves) << halves.error().message();
  EXPECT_EQ(halves->size(), kMembers);
  for (const auto& [who, member, bytes] : *halves) {
    ASSERT_TRUE(member) << member.error().message();
    EXPECT_EQ(std::get<0>(bytes), std::vector<std::byte>(2, std::byte{*member}));
    EXPECT_EQ(std::get<1>(bytes), std::vector<std::byte>(3, std::byte{*member}));
  }
}

TEST_F(Groups, bytes_of_members_that_fail_are_empty) {
  auto client = import();
  ASSERT_TRUE(client);
  members_[1].service.full = true;
  const auto all = client->all().Fill(3);
  ASSERT_TRUE(all) << all.error().message();
  EXPECT_EQ(all->size(), kMembers);
  for (const auto& [who, result, data] : *all) {
    EXPECT_EQ(result.code(), who.str() == name(1) ? Errc::limit_reached : Errc::ok);
    EXPECT_EQ(data.size(), result ? 3U : 0U) << who.str();
  }
}

TEST_F(Groups, each_members_version_of_inout_arguments_is_given_with_its_reply) {
  auto client = import();
  ASSERT_TRUE(client);
  here_->wire().needed = kMembers;
  std::array<std::byte, 2> held{std::byte{7}, std::byte{8}};
  const std::array<std::byte, 1> other{std::byte{9}};
  const lrpc::Buffer data(held, held.size());
  const lrpc::String<20> mark("m");
  const auto all = client->all().Sign(40, mark, data, other);
  ASSERT_TRUE(all) << all.error().message();
  EXPECT_EQ(all->size(), kMembers);
  for (const auto& [who, member, passed] : *all) {
    ASSERT_TRUE(member) << member.error().message();
    const auto& [count, marked, signed_data] = passed;
    EXPECT_EQ(count, 40U + *member);
    EXPECT_EQ(marked.view(), "m" + std::to_string(*member));
    EXPECT_EQ(signed_data, (std::vector{std::byte{7}, std::byte{8}, std::byte{9}}));
  }
  EXPECT_EQ(held, (std::array{std::byte{7}, std::byte{8}})) << "the caller's stays as it was";
  const std::array<std::byte, 9> long_one{};
  EXPECT_EQ(client->all().Sign(40, mark, data, long_one).code(), Errc::argument_too_long);
}

TEST_F(Groups, a_single_inout_argument_is_given_as_it_is) {
  auto client = import();
  ASSERT_TRUE(client);
  members_[1].service.full = true;
  const auto all = client->all().Increase(4);
  ASSERT_TRUE(all) << all.error().message();
  EXPECT_EQ(all->size(), kMembers);
  for (const auto& [who, result, count] : *all) EXPECT_EQ(count, result ? 5U : 0U) << who.str();
}

TEST_F(Groups, a_binding_to_one_host_has_no_members_to_ask) {
  auto client = import("files@" + name(0));
  ASSERT_TRUE(client);
  const auto asked = client->all().Add(1, 2);
  EXPECT_EQ(asked.code(), Errc::not_supported);
  EXPECT_EQ(asked.error().text, "not supported here: all() needs a binding to a group: import NAME@GROUP");
  auto local = Replica::Client::import("files", {.nameserver = members_[0].host->socket()});
  ASSERT_TRUE(local);
  const auto locally = local->all().Add(1, 2);
  EXPECT_EQ(locally.code(), Errc::not_supported);
  EXPECT_EQ(locally.error().text, asked.error().text);
}

TEST_F(Groups, say_why_they_cannot_be_bound) {
  EXPECT_EQ(import("nothing@replicas").code(), Errc::name_unknown);
  EXPECT_EQ(import("files@replica").code(), Errc::remote_unavailable) << "no group, so a host";
  const auto wide = Wide::Client::import("files@replicas", {.nameserver = here_->socket()});
  EXPECT_EQ(wide.code(), Errc::message_too_long);
  here_->wire().set_members({address(0), kHere});
  const auto own = import();
  EXPECT_EQ(own.code(), Errc::invalid_argument);
  EXPECT_NE(own.error().text.find("includes this machine"), std::string::npos) << own.error().text;
  here_->wire().set_members({0x0a00'0063});
  const auto nobody = import();
  EXPECT_EQ(nobody.code(), Errc::remote_unavailable);
  EXPECT_NE(nobody.error().text.find("member 10.0.0.99 of group 'replicas'"), std::string::npos) << nobody.error().text;
  EXPECT_EQ(here_->broker().statistics().paths, 0U);
}

TEST_F(Groups, one_member_is_enough_and_the_others_join_when_they_are_there) {
  members_[0].server.reset();
  members_[2].host->stop_broker();
  auto client = import();
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_EQ(*client->Add(1, 2), 3);
  EXPECT_EQ(added(*client),
            (std::map<std::string, std::string>{
                {name(0), failure(Errc::call_failed)}, {name(1), "42"}, {name(2), failure(Errc::call_failed)}}));
  here_->wire().needed = 2;
  EXPECT_EQ(client->Add(1, 2).code(), Errc::call_failed);
  serve(0);
  members_[2].host->start_broker(there_options());
  EXPECT_TRUE(eventually([&] { return here_->broker().statistics().paths == kMembers; }));
  EXPECT_EQ(added(*client), (std::map<std::string, std::string>{{name(0), "42"}, {name(1), "42"}, {name(2), "42"}}));
}

TEST_F(Groups, a_member_that_has_restarted_is_bound_anew_and_executes_nothing_meant_for_its_earlier_life) {
  auto client = import();
  ASSERT_TRUE(client);
  members_[1].host->stop_broker();
  members_[1].host->start_broker(there_options());
  const auto before = members_[1].service.calls.load();
  const auto said = added(*client);
  if (said.at(name(1)) != "42") {
    EXPECT_EQ(said.at(name(1)), failure(Errc::call_failed));
    EXPECT_EQ(members_[1].service.calls, before);
  }
  EXPECT_TRUE(eventually([&] { return added(*client).at(name(1)) == "42"; }));
}

/// The refusal of a call over an earlier binding says nothing about the new one.
TEST_F(Groups, a_late_refusal_does_not_end_the_binding_that_has_been_made_since) {
  auto client = import();
  ASSERT_TRUE(client);
  std::promise<void> sent;
  std::promise<void> bound;
  std::atomic<int> calls{0};
  network_.tamper([&, wait = bound.get_future().share()](std::uint16_t command, std::vector<std::byte>&) {
    if (command != Network::kGroupCall || calls++ != 0) return;
    sent.set_value();
    wait.wait();
  });
  std::thread late([&] { EXPECT_NE(added(*client).at(name(1)), "42"); });
  sent.get_future().wait();
  members_[1].host->stop_broker();
  members_[1].host->start_broker(there_options());
  EXPECT_TRUE(eventually([&] { return members_[1].host->broker().statistics().bindings == 1; }));
  EXPECT_EQ(added(*client).at(name(1)), "42");
  bound.set_value();
  late.join();
  EXPECT_EQ(added(*client).at(name(1)), "42");
  network_.tamper(nullptr);
}

/// Members see each other's keys, so one may try to present another's.
TEST_F(Groups, a_member_cannot_give_out_another_ones_key_as_its_own) {
  auto first = import();
  ASSERT_TRUE(first);
  const std::uint64_t boot = members_[1].host->broker().boot_id();
  members_[0].host->stop_broker();
  auto forging = there_options();
  forging.boot_id = boot;
  members_[0].host->start_broker(forging);
  auto second = import();
  ASSERT_TRUE(second);
  EXPECT_EQ(added(*second).at(name(0)), failure(Errc::call_failed));
  EXPECT_EQ(added(*second).at(name(1)), "42");
}

/// Each member is bound by a thread of its own.
TEST_F(Groups, of_members_that_answer_at_the_same_moment_with_one_boot_id_one_is_bound) {
  constexpr int kAll = 16;
  auto options = there_options();
  options.max_bindings_per_host = 1'000'000;
  members_[0].host->stop_broker();
  members_[0].host->start_broker(options);
  std::vector<HostAddress> all;
  for (std::size_t i = 0; i < kAll; ++i) {
    all.push_back(address(i));
    network_.attach(address(i), &members_[0].host->broker());
  }
  here_->wire().set_members(all);
  // Shared, because the broker may still be binding when the test ends.
  auto served = std::make_shared<std::atomic<int>>(0);
  network_.when_served([served](std::uint16_t command) {
    if (command != Network::kBind || ++*served > kAll) return;
    for (int looks = 0; looks < 50'000'000 && *served < kAll; ++looks) std::this_thread::yield();
  });
  for (int i = 0; i < 50; ++i) {
    *served = 0;
    auto client = import();
    ASSERT_TRUE(client) << client.error().message();
    const auto bindings = here_->broker().group_bindings();  // the previous binding may not have ended yet
    ASSERT_FALSE(bindings.empty());
    EXPECT_EQ(std::ranges::count_if(bindings.back().members, [](const auto& one) { return one.bound; }), 1);
  }
  network_.when_served(nullptr);
}

TEST_F(Groups, an_address_of_a_group_is_no_host) {
  EXPECT_EQ(import("files@239.0.0.0").code(), Errc::invalid_argument);
}

TEST_F(Groups, one_way_calls_go_to_all_members) {
  auto client = import();
  ASSERT_TRUE(client);
  EXPECT_TRUE(client->Note(7));
  for (Member& member : members_) EXPECT_TRUE(eventually([&] { return member.service.noted == 7; }));
}

TEST_F(Groups, other_hosts_are_told_when_the_client_goes) {
  {
    auto client = import();
    ASSERT_TRUE(client);
    for (Member& member : members_) EXPECT_EQ(member.host->broker().statistics().bindings, 1U);
  }
  for (Member& member : members_)
    EXPECT_TRUE(eventually([&] { return member.host->broker().statistics().bindings == 0; }));
  EXPECT_EQ(here_->broker().statistics().paths, 0U);
}

/// Clients bind and unbind while a thread of the broker notices that members are lost and found.
TEST_F(Groups, clients_come_and_go_while_members_begin_again) {
  std::atomic<bool> done{false};
  std::atomic<int> rounds{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 2; ++i)
    clients.emplace_back([&] {
      while (!done) {
        auto client = import();
        for (int j = 0; client && j < 3; ++j) (void)client->all().Add(1, j);
        ++rounds;
      }
    });
  for (std::size_t i = 0; i < kMembers; ++i) {
    const int before = rounds;
    members_[i].host->stop_broker();
    EXPECT_TRUE(eventually([&] { return rounds >= before + 4; }));
    members_[i].host->start_broker(there_options());
  }
  done = true;
  for (std::thread& client : clients) client.join();
  auto client = import();
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_TRUE(eventually([&] {
    const auto said = added(*client);
    return std::ranges::all_of(said, [](const auto& one) { return one.second == "42"; }) && said.size() == kMembers;
  }));
}

TEST_F(Groups, wait_for_a_name_that_comes_later) {
  for (Member& member : members_) member.server.reset();
  std::atomic<int> binds{0};
  network_.tamper([&](std::uint16_t command, std::vector<std::byte>&) { binds += command == Network::kBind ? 1 : 0; });
  std::thread later([&] {
    EXPECT_TRUE(eventually([&] { return binds >= 4; }));
    serve(2);
  });
  auto client = Replica::Client::import("files@replicas", {.nameserver = here_->socket(), .timeout = kPatience});
  later.join();
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_EQ(added(*client).at(name(2)), "42");
  network_.tamper(nullptr);
}

}  // namespace
}  // namespace testing_netpath
