// Started calls that outlive their client, and clients that are destroyed while they are told that their server has
// ended.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "eventually.h"
#include "gates.h"
#include "holdings.h"
#include "lrpc/detail/client/call/call_scope.h"
#include "lrpc/detail/client/call/completion_queue.h"
#include "tasks_service.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using lrpc::Gate;
using namespace std::chrono_literals;

using Sum = decltype(std::declval<Tasks::Client&>().start().Add(0, 0));
using Nap = decltype(std::declval<Tasks::Client&>().start().NapFor(0));

/// The client is destroyed while calls are under way; the server lives on.
class OutlivingCalls : public testing::TestWithParam<Gate> {
 protected:
  void SetUp() override {
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(tasks_.client->Null());  // lets the gate settle
  }
  Nap start_nap() {
    const std::uint32_t before = tasks_.service.staying;
    auto nap = tasks_.client->start().NapFor(kUntilLetGo);
    EXPECT_TRUE(eventually([&] { return tasks_.service.staying > before; }));
    return nap;
  }
  void end_client() { tasks_.client.reset(); }

  LocalTasks tasks_{{.gate = GetParam()}};
};

TEST_P(OutlivingCalls, that_have_returned_give_their_results) {
  auto sum = tasks_.client->start().Add(40, 2);
  auto refused = tasks_.client->start().Check(13);
  auto failed = tasks_.client->start().Fail(static_cast<std::uint16_t>(Errc::not_permitted), "not for you");
  ASSERT_TRUE(sum.wait_for(kPatience) && refused.wait_for(kPatience) && failed.wait_for(kPatience));
  end_client();
  EXPECT_TRUE(sum.ready());
  EXPECT_EQ(sum.finish().value(), 42);
  EXPECT_EQ(sum.finish().code(), Errc::invalid_argument) << "once only";
  EXPECT_NE(refused.finish().raised<Tasks::Refused>(), nullptr);
  EXPECT_EQ(failed.finish().error().text, "not for you");
}

TEST_P(OutlivingCalls, that_have_not_returned_are_call_failed) {
  auto nap = start_nap();
  EXPECT_FALSE(nap.ready());
  end_client();
  EXPECT_TRUE(nap.ready());
  EXPECT_TRUE(nap.wait_for(1h));
  EXPECT_EQ(nap.finish().code(), Errc::call_failed);
}

TEST_P(OutlivingCalls, can_be_dropped_moved_and_replaced) {
  auto dropped = std::make_unique<Nap>(start_nap());
  auto moved = start_nap();
  auto replaced = start_nap();
  auto returned = tasks_.client->start().Add(1, 2);
  ASSERT_TRUE(returned.wait_for(kPatience));
  end_client();
  dropped.reset();
  Nap target = std::move(moved);
  Nap second = std::move(target);
  EXPECT_EQ(second.finish().code(), Errc::call_failed);
  replaced = std::move(second);
  EXPECT_EQ(replaced.finish().code(), Errc::invalid_argument);
  Sum to = std::move(returned);
  EXPECT_EQ(to.finish().value(), 3);
}

TEST_P(OutlivingCalls, can_be_cancelled_or_have_a_deadline) {
  std::optional<Nap> cancelled;
  std::optional<Nap> limited;
  lrpc::Cancellation cancellation;
  {
    const lrpc::CallScope scope{cancellation};
    cancelled.emplace(start_nap());
  }
  {
    const lrpc::CallScope scope{1h};
    limited.emplace(start_nap());
  }
  end_client();
  cancellation.cancel();
  EXPECT_TRUE(cancelled->ready());
  EXPECT_EQ(cancelled->finish().code(), Errc::call_failed);
  EXPECT_EQ(limited->finish().code(), Errc::call_failed);
}

TEST_P(OutlivingCalls, are_told_by_their_completion_queue) {
  auto queue = *lrpc::CompletionQueue::create();
  auto nap = start_nap();
  std::optional<Errc> end;
  ASSERT_TRUE(queue->watch(nap, [&] { end = nap.finish().code(); }));
  auto dropped = std::make_unique<Nap>(start_nap());
  ASSERT_TRUE(queue->watch(*dropped, [] { FAIL() << "it was dropped"; }));
  end_client();
  dropped.reset();
  EXPECT_TRUE(eventually([&] {
    (void)queue->wait(10ms);
    return end.has_value();
  }));
  EXPECT_EQ(end, Errc::call_failed);
}

TEST_P(OutlivingCalls, can_be_finished_by_many_threads_at_once) {
  std::vector<Sum> sums;
  for (int i = 0; i < 12; ++i) sums.push_back(tasks_.client->start().Add(i, 1));
  for (auto& sum : sums) ASSERT_TRUE(sum.wait_for(kPatience));
  end_client();
  std::vector<std::thread> threads;
  for (int i = 0; i < 12; ++i) {
    threads.emplace_back([&, i] {
      if (i % 3 == 0) {
        const Sum dropped = std::move(sums[static_cast<std::size_t>(i)]);
      } else {
        EXPECT_EQ(sums[static_cast<std::size_t>(i)].finish().value(), i + 1);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_P(OutlivingCalls, leave_nothing_behind_when_the_last_has_ended) {
  end_client();
  tasks_.service.let_all_go();
  ASSERT_TRUE(eventually([&] { return tasks_.server.statistics().bindings == 0; }));
  ASSERT_TRUE(eventually([] { return Holdings::of().regions == 0; }));
  const Holdings before = Holdings::of();
  for (int round = 0; round < 5; ++round) {
    auto ends = lrpc::shim::make_socket_pair();
    ASSERT_TRUE(ends && Tasks::serve_over(tasks_.server, std::move(ends->first), tasks_.service));
    auto client =
        Tasks::Client::import_over(std::move(ends->second), {.gate = GetParam(), .supply = lrpc::AStackSupply::grow});
    ASSERT_TRUE(client) << client.error().message();
    // A-stacks in all states when the client ends: leased, spare, in quarantine, used by a one-way call and by lasting
    // calls.
    ASSERT_TRUE(client->Null());
    ASSERT_TRUE(client->start().Null().finish());
    { const auto abandoned = client->start().NapFor(1); }
    ASSERT_TRUE(client->Log(1, "sent"));
    std::thread([&] { EXPECT_TRUE(client->start().Null().finish()); }).join();
    std::vector<Sum> sums;
    for (int i = 0; i < 20; ++i) sums.push_back(client->start().Add(i, round));
    for (auto& sum : sums) ASSERT_TRUE(sum.wait_for(kPatience));
    { const auto gone = *std::move(client); }
    for (int i = 0; i < 20; i += 2) EXPECT_EQ(sums[static_cast<std::size_t>(i)].finish().value(), i + round);
    if (round == 4) {
      EXPECT_NE(Holdings::of().regions, 0U) << "the others hold the region";
    }
  }
  EXPECT_TRUE(eventually([&] { return Holdings::of().within(before); }));
}

INSTANTIATE_TEST_SUITE_P(gates, OutlivingCalls, testing::ValuesIn(kRepeatedGates), gate_name);

/// Clients whose server is killed, and which react when they are told.
class ToldClients : public testing::Test {
 protected:
  /// Imports from a server of its own; `told` runs when that server is gone.
  std::unique_ptr<Tasks::Client> import(std::function<void()> told = {}) {
    TasksProcess& tasks = servers_.emplace_back(start_tasks_process(LRPC_TASKS_SERVER));
    auto heard = [this, told = std::move(told)] {
      EXPECT_TRUE(killed_);
      if (told) told();
    };
    auto imported = Tasks::Client::import_over(std::move(tasks.socket), {.on_revoked = std::move(heard)});
    if (!imported) {
      ADD_FAILURE() << imported.error().message();
      return nullptr;
    }
    return std::make_unique<Tasks::Client>(*std::move(imported));
  }
  void kill_first() {
    killed_ = true;
    servers_.front().process.kill_and_wait();
  }

  std::vector<TasksProcess> servers_;
  std::unique_ptr<Tasks::Client> client_;
  std::atomic<int> told_{0};

 private:
  /// Orders what the test has done before the thread that is told. A server's death orders the two as well, but
  /// ThreadSanitizer does not see that.
  std::atomic<bool> killed_{false};
};

TEST_F(ToldClients, may_end_where_they_are_told_of_their_servers_end) {
  client_ = import([&] {
    client_.reset();
    ++told_;
  });
  ASSERT_NE(client_, nullptr);
  ASSERT_TRUE(client_->Null());
  kill_first();
  ASSERT_TRUE(eventually([&] { return told_ == 1; }));
  EXPECT_EQ(client_, nullptr);
}

TEST_F(ToldClients, may_be_replaced_where_they_are_told_of_their_servers_end) {
  std::unique_ptr<Tasks::Client> spare;
  client_ = import([&] {
    *client_ = std::move(*spare);
    ++told_;
  });
  spare = import([&] { told_ += 100; });
  ASSERT_TRUE(client_ != nullptr && spare != nullptr);
  kill_first();
  ASSERT_TRUE(eventually([&] { return told_ == 1; }));
  EXPECT_EQ(client_->Add(1, 2).value(), 3) << "by the second server";
}

TEST_F(ToldClients, may_end_there_while_calls_are_under_way) {
  client_ = import([&] {
    client_.reset();
    ++told_;
  });
  ASSERT_NE(client_, nullptr);
  auto finished = client_->start().NapFor(kUntilLetGo);
  auto dropped = std::make_unique<Nap>(client_->start().NapFor(kUntilLetGo));
  kill_first();
  ASSERT_TRUE(eventually([&] { return told_ == 1; }));
  EXPECT_EQ(finished.finish().code(), Errc::call_failed);
  dropped.reset();
}

TEST_F(ToldClients, may_end_their_last_call_there) {
  std::optional<Nap> nap;
  std::optional<Errc> end;
  client_ = import([&] {
    client_.reset();
    end = nap->finish().code();
    ++told_;
  });
  ASSERT_NE(client_, nullptr);
  nap.emplace(client_->start().NapFor(kUntilLetGo));
  kill_first();
  ASSERT_TRUE(eventually([&] { return told_ == 1; }));
  EXPECT_EQ(end, Errc::call_failed);
}

TEST_F(ToldClients, may_end_in_what_is_told_late_or_beside_others) {
  client_ = import([&] { ++told_; });
  ASSERT_NE(client_, nullptr);
  ASSERT_TRUE(client_->binding().when_revoked([&] {
    client_.reset();
    ++told_;
  }));
  ASSERT_TRUE(client_->binding().when_revoked([&] { ++told_; }));
  kill_first();
  ASSERT_TRUE(eventually([&] { return told_ == 3; })) << "the one behind it is told, too";

  auto late = import();
  ASSERT_NE(late, nullptr);
  servers_.back().process.kill_and_wait();
  ASSERT_TRUE(eventually([&] { return late->binding().revoked(); }));
  // Until the watcher's thread has told everybody, it is the one that calls.
  EXPECT_TRUE(eventually([&, here = std::this_thread::get_id()] {
    EXPECT_TRUE(late->binding().when_revoked([&late, here] {
      if (std::this_thread::get_id() == here) late.reset();
    }));
    return late == nullptr;
  })) << "at once, on this thread";
}

}  // namespace
}  // namespace testing_lrpc
