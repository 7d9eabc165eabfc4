// A client that breaks every rule. The server's other clients must not notice.
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <atomic>
#include <climits>
#include <cstring>
#include <thread>

#include "bystander.h"
#include "conformance.server.h"
#include "conformance_service.h"
#include "garbage.h"
#include "gates.h"
#include "length.h"
#include "lrpc/detail/shim/call/gates.h"
#include "lrpc/server.h"
#include "raw_binding.h"
#include "world.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using lrpc::Gate;
using namespace std::chrono_literals;
namespace shim = lrpc::shim;

std::uint16_t refused(Errc code) {
  return static_cast<std::uint16_t>(shim::call_status::kFailed | static_cast<std::uint16_t>(code));
}

/// A server process, an honest client, and room for a hostile one.
class HostileClient : public testing::TestWithParam<Gate> {
 protected:
  void SetUp() override {
    // Idle E-stacks end soon, so that leaked ones show.
    server_ = world_.start_server({"target"}, {"--estack-idle", "200"});
    auto client = world_.import("target", {.gate = GetParam()});
    ASSERT_TRUE(client) << client.error().message();
    bystander_ = std::make_unique<Bystander>(*std::move(client));
    holdings_ = std::make_unique<ServerHoldings>(bystander_->client(), server_.pid());
  }
  void TearDown() override {
    if (bystander_ == nullptr || HasFatalFailure()) return;
    bystander_->call(50);
    holdings_->expect_as_before();
    EXPECT_EQ(bystander_->client().ServerPid().value(), server_.pid()) << "the server is alive";
  }
  World world_;
  Process server_;
  std::unique_ptr<Bystander> bystander_;
  std::unique_ptr<ServerHoldings> holdings_;
};

/// Rings calls on one A-stack after another. The generation is the next one by the word, so many calls are executed,
/// with arguments that other threads rewrite meanwhile.
void ring_without_rules(const RawBinding& binding, Random random, const std::atomic<bool>& stop) {
  const auto astacks = all_astacks(binding.region());
  while (!stop) {
    const shim::AStack& astack = random.pick<shim::AStack>(astacks);
    astack.head->word.store(nasty_call_word(random, astack.head->word.load()));
    if (random.one_in(2)) shim::futex_wake(astack.head->word, shim::Sleeper::estack);
    std::array<char, 200> rings{};
    if (random.one_in(4))
      (void)send(binding.bell(), rings.data(), 1 + random.below(rings.size()), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (random.one_in(16)) std::this_thread::sleep_for(100us);
  }
}

void scribble_without_end(const RawBinding& binding, Random random, const std::atomic<bool>& stop) {
  while (!stop) {
    scribble_slots(random, binding.region());
    if (random.one_in(8)) scribble_tails(random, binding.region(), 1000);
    if (random.one_in(16)) punch_hole(random, binding.region());
    if (random.one_in(2)) std::this_thread::sleep_for(100us);  // lets some calls through unharmed
  }
}

TEST_P(HostileClient, that_rewrites_its_region_under_running_calls_harms_nobody_else) {
  {
    const RawBinding hostile(world_.nameserver(), "target", GetParam());
    std::atomic<bool> stop{false};
    std::thread scribbler([&] { scribble_without_end(hostile, Random(test_seed()), stop); });
    std::thread caller([&] { ring_without_rules(hostile, Random(test_seed() + 1), stop); });
    bystander_->call(rounds(400));
    stop = true;
    scribbler.join();
    caller.join();
  }
}

TEST_P(HostileClient, that_goes_while_its_garbage_is_being_served_leaves_nothing_behind) {
  for (int round = 0; round < 10; ++round) {
    RawBinding hostile(world_.nameserver(), "target", GetParam());
    std::atomic<bool> stop{false};
    std::thread caller(
        [&] { ring_without_rules(hostile, Random(test_seed() + 10 + static_cast<unsigned>(round)), stop); });
    Random random(test_seed() + 2);
    for (int i = 0; i < 50; ++i) scribble_slots(random, hostile.region());
    hostile.hang_up();
    bystander_->call(20);
    stop = true;
    caller.join();
  }
}

TEST_P(HostileClient, that_rings_what_it_may_not_is_told_why) {
  RawBinding hostile(world_.nameserver(), "target", GetParam());
  const auto classes = hostile.region().layout().classes();
  const auto first = [&](std::string_view name) {
    return classes[Conformance::kPdl.procedures[procedure(name)].astack_class].first_astack;
  };
  const auto image = [&](std::string_view name) { return hostile.region().astack(first(name)).image; };
  const auto call = [&](std::string_view name) { return hostile.call(first(name), procedure(name)); };

  EXPECT_EQ(call("Null"), 0);
  const auto procedures = static_cast<std::uint16_t>(Conformance::kPdl.procedures.size());
  EXPECT_EQ(hostile.call(0, procedures), refused(Errc::bad_procedure));
  EXPECT_EQ(hostile.call(0, 0xffff), refused(Errc::bad_procedure));
  EXPECT_EQ(hostile.call(first("Greet"), procedure("Null")), refused(Errc::bad_procedure))
      << "an A-stack of another class";

  image("Halve")[0] = std::byte{101};
  EXPECT_EQ(call("Halve"), refused(Errc::argument_out_of_range));
  image("NextColour")[0] = std::byte{3};
  EXPECT_EQ(call("NextColour"), refused(Errc::argument_out_of_range));
  image("Flip")[0] = std::byte{2};
  EXPECT_EQ(call("Flip"), refused(Errc::argument_out_of_range)) << "neither true nor false";
  std::memset(image("Advance"), 0xff, 24);
  EXPECT_EQ(call("Advance"), refused(Errc::bad_handle));
  for (const char* name : {"Greet", "Concatenate", "Sum", "SumInPlace", "Reverse", "SmallBytes", "Through"}) {
    const lrpc::VariableParameter& text = Conformance::kPdl.procedures[procedure(name)].variable_parameters.front();
    for (const std::uint32_t length : {text.bound + 1, 0x7fff'ffffU, 0xffff'ffffU, 0x8000'0000U | (text.bound + 1)}) {
      std::memset(image(name), 0, Conformance::kPdl.procedures[procedure(name)].image_size);
      std::memcpy(image(name) + text.length_offset, &length, sizeof length);
      EXPECT_EQ(call(name), refused(Errc::argument_too_long)) << name << " " << length;
    }
  }
  EXPECT_EQ(call("Null"), 0) << "refusals do not end a binding";
  bystander_->call();
}

TEST_P(HostileClient, that_takes_its_calls_back_keeps_no_estack_from_ending) {
  RawBinding hostile(world_.nameserver(), "target", GetParam());
  Random random(test_seed() + 3);
  for (int i = 0; i < 300; ++i) {
    const auto astack = static_cast<std::uint32_t>(random.below(hostile.region().layout().astack_count()));
    hostile.ring(astack, procedure("Null"));
    if (random.one_in(2)) hostile.region().astack(astack).head->word.store(0);
    if (i % 50 == 0) bystander_->call();
  }
}

TEST_P(HostileClient, that_rings_its_bell_without_end_keeps_nobody_waiting) {
  const RawBinding hostile(world_.nameserver(), "target", GetParam());
  std::atomic<bool> stop{false};
  std::vector<std::thread> ringers;
  for (int i = 0; i < 3; ++i) {
    ringers.emplace_back([&] {
      while (!stop) (void)send(hostile.bell(), "!", 1, MSG_NOSIGNAL);
    });
  }
  // Binding and the first call on each A-stack need the clerk. Both happen while the bell keeps ringing.
  for (int i = 0; i < 5; ++i) {
    auto client = world_.import("target", {.timeout = kPatience, .gate = GetParam()});
    EXPECT_TRUE(client) << client.error().message();
    if (!client) break;
    const auto sum = client->Add(i, 1);
    EXPECT_TRUE(sum) << sum.error().message();
  }
  stop = true;
  for (auto& thread : ringers) thread.join();
}

TEST_P(HostileClient, that_says_something_strange_on_its_bell_loses_at_most_its_own_binding) {
  RawBinding hostile(world_.nameserver(), "target", GetParam());
  EXPECT_EQ(hostile.call(0, procedure("Null")), 0);
  (void)send(hostile.bell(), "", 0, MSG_NOSIGNAL);
  bystander_->call(50);
  shim::BinderMessage message = import_request("target");
  for (int i = 0; i < 3; ++i) message.fds.push_back(duplicate(STDERR_FILENO));
  (void)shim::send_message(hostile.bell(), message);
  bystander_->call(50);
}

INSTANTIATE_TEST_SUITE_P(gates, HostileClient, testing::ValuesIn(kRepeatedGates), gate_name);

/// Slow enough that calls on several A-stacks queue.
struct SlowService : ConformanceService {
  using ConformanceService::ConformanceService;
  void Null(lrpc::CallContext&) {
    const auto until = std::chrono::steady_clock::now() + 2us;
    while (std::chrono::steady_clock::now() < until) {
    }
    ++executed;
  }
  std::atomic<std::uint64_t> executed{0};
};

// A binding whose calls name no processor counts as a caller, but keeps no processor free of pollers. So such bindings
// are redistributed again and again, even on two processors.
TEST(HostileCaller, that_is_on_no_processor_moves_between_pollers_and_loses_no_call) {
  SlowService service;
  lrpc::Server server;
  std::vector<RawBinding> bindings;
  for (int i = 0; i < 2; ++i) {
    auto ends = shim::make_socket_pair();
    ASSERT_TRUE(ends);
    ASSERT_TRUE(Conformance::serve_over(server, std::move(ends->first), service));
    bindings.emplace_back(ends->second.get(), Gate::exchange);
  }
  const auto stacks =
      bindings[0].region().layout().classes()[Conformance::kPdl.procedures[procedure("Null")].astack_class];
  const auto served = [&](RawBinding& binding, std::uint32_t astack) {
    for (int look = 0; look < 2000; ++look) {
      if (const auto status = binding.returned(astack)) return status == 0;
    }
    for (int look = 0; look < 1'000'000; ++look) {
      binding.wake(astack);
      std::this_thread::sleep_for(50us);
      if (const auto status = binding.returned(astack)) return status == 0;
    }
    return false;
  };
  const auto on_each = [&](const auto& act) {
    for (std::uint32_t i = 0; i < stacks.declared.count; ++i)
      for (RawBinding& binding : bindings) act(binding, stacks.first_astack + i);
  };
  std::uint64_t calls = 0;
  std::uint32_t most = 0;
  int left = rounds(1500);
  for (int round = 0; left > 0 && !HasFailure(); ++round, --left) {
    on_each([&](RawBinding& binding, std::uint32_t astack) {
      EXPECT_TRUE(round == 0 || served(binding, astack)) << "round " << round;
      binding.ring_only(astack, procedure("Null"));
      ++calls;
    });
    if (round % 16 != 0 || most > 1) continue;
    most = server.statistics().polling;
    if (most > 1) left = std::min(left, rounds(300));
  }
  on_each([&](RawBinding& binding, std::uint32_t astack) { EXPECT_TRUE(served(binding, astack)); });
  EXPECT_EQ(service.executed, calls);
  if (most < 2) GTEST_SKIP() << "no second poller has begun: the machine is busy, or has one processor";
}

/// Requeues the threads that sleep on an A-stack's word to a word that only this process knows.
long steal_sleepers(const shim::AStack& astack, void* elsewhere) {
  const auto now = static_cast<std::uint32_t>(astack.head->word.load());
  return syscall(SYS_futex, &astack.head->word, FUTEX_CMP_REQUEUE, 0, INT_MAX, elsewhere, now);
}

TEST(HostileSleeper, an_estack_whose_sleep_was_stolen_comes_back) {
  World world;
  const Process server = world.start_server({"target"}, {"--estack-idle", "300"});
  auto client = world.import("target");
  ASSERT_TRUE(client) << client.error().message();
  Bystander bystander(*std::move(client));
  ServerHoldings holdings(bystander.client(), server.pid());
  void* elsewhere = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(elsewhere, MAP_FAILED);
  {
    RawBinding hostile(world.nameserver(), "target", Gate::handoff);
    ASSERT_EQ(hostile.call(0, procedure("Null")), 0);
    ASSERT_TRUE(eventually([&] { return steal_sleepers(hostile.region().astack(0), elsewhere) > 0; }));
  }
  bystander.call(100);
  holdings.expect_as_before();
  munmap(elsewhere, 4096);
}

}  // namespace
}  // namespace testing_lrpc
