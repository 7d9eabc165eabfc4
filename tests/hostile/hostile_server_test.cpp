// A server that breaks every rule. All calls of its client end, with an error or with a value of the declared type.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bystander.h"
#include "garbage.h"
#include "length.h"
#include "lrpc/detail/shim/binder/told_text.h"
#include "raw_binding.h"
#include "world.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using lrpc::Gate;
using namespace std::chrono_literals;
namespace layout = Conformance::layout;

/// Room for results, followed by a guard area that must not change.
class FencedRoom {
 public:
  explicit FencedRoom(std::size_t size) : memory_(size + kFence, std::byte{0xf5}), size_(size) {}
  [[nodiscard]] std::span<std::byte> room() { return std::span(memory_).first(size_); }
  [[nodiscard]] bool intact() const {
    return std::all_of(memory_.begin() + static_cast<std::ptrdiff_t>(size_), memory_.end(),
                       [](std::byte b) { return b == std::byte{0xf5}; });
  }

 private:
  static constexpr std::size_t kFence = 64;
  std::vector<std::byte> memory_;
  std::size_t size_;
};

void expect_conforming(const lrpc::Buffer& buffer, const FencedRoom& room) {
  EXPECT_LE(buffer.size(), buffer.capacity());
  EXPECT_TRUE(room.intact()) << "written behind the caller's buffer";
}

/// Calls one procedure after another. All results must conform to the interface. Returns how the call ended.
class Conduct {
 public:
  Errc call_next(Conformance::Client& client) { return kCalls[next_++ % kCalls.size()](client); }

 private:
  using CallOne = Errc (*)(Conformance::Client&);
  static Errc add(Conformance::Client& client) { return client.Add(1, 2).code(); }
  static Errc flip(Conformance::Client& client) { return client.Flip(true).code(); }
  static Errc next_colour(Conformance::Client& client) {
    const auto next = client.NextColour(Conformance::Colour::Red);
    if (next) {
      EXPECT_TRUE(layout::is_Colour(*next)) << static_cast<int>(*next);
    }
    return next.code();
  }
  static Errc halve(Conformance::Client& client) {
    const auto halved = client.Halve(100, -10);
    if (halved) {
      EXPECT_TRUE(layout::is_Percent(halved->half) && layout::is_Signed(halved->negated));
    }
    return halved.code();
  }
  static Errc mirror(Conformance::Client& client) {
    Conformance::Shape shape{
        .name = "s", .colour = Conformance::Colour::Blue, .corners = {}, .filled = true, .share = 7};
    const Conformance::Shape before = shape;
    const auto mirrored = client.Mirror(shape);
    EXPECT_TRUE(layout::is_Shape(shape));
    EXPECT_LE(shape.name.size(), 32U);
    if (!mirrored) {
      EXPECT_EQ(shape, before) << "an output was touched by a call that failed";
    }
    return mirrored.code();
  }
  static Errc integers(Conformance::Client& client) { return client.Integers(1, 2, 3, 4, 5, 6, 7, 8).code(); }
  static Errc greet(Conformance::Client& client) {
    const auto greeting = client.Greet("you");
    if (greeting) {
      EXPECT_LE(greeting->str().size(), 300U);
    }
    return greeting.code();
  }
  static Errc concatenate(Conformance::Client& client) {
    const auto both = client.Concatenate(std::string(2000, 'a'), "b");
    if (both) {
      EXPECT_LE(both->str().size(), 4000U);
    }
    return both.code();
  }
  static Errc fill(Conformance::Client& client) {
    FencedRoom room(5000);
    lrpc::Buffer data{room.room()};
    const Errc code = client.Fill(5000, 1, data).code();
    expect_conforming(data, room);
    return code;
  }
  static Errc reverse(Conformance::Client& client) {
    FencedRoom room(3000);
    lrpc::Buffer data(room.room(), 3000);
    const Errc code = client.Reverse(data).code();
    expect_conforming(data, room);
    return code;
  }
  static Errc small_bytes(Conformance::Client& client) {
    FencedRoom room(16);
    lrpc::Buffer copy{room.room()};
    const Errc code = client.SmallBytes(room.room(), copy).code();
    expect_conforming(copy, room);
    return code;
  }
  static Errc check(Conformance::Client& client) {
    const auto checked = client.Check(1);
    const bool named =
        checked.raised<Conformance::TooBig>() != nullptr || checked.raised<Conformance::Refused>() != nullptr;
    EXPECT_EQ(checked.code() == Errc::raised, named) << "an error that the procedure does not declare";
    if (const auto* big = checked.raised<Conformance::TooBig>()) {
      EXPECT_LE(big->what.str().size(), 64U);
    }
    if (const auto* refused = checked.raised<Conformance::Refused>()) {
      EXPECT_LE(refused->reason.str().size(), 128U);
    }
    return checked.code();
  }
  static Errc bad_result(Conformance::Client& client) {
    const auto share = client.BadResult();
    if (share) {
      EXPECT_TRUE(layout::is_Percent(*share));
    }
    return share.code();
  }
  /// The error's text must be short and printable.
  static Errc null(Conformance::Client& client) {
    const lrpc::Error error = client.Null().error();
    EXPECT_LE(error.text.size(), lrpc::shim::kMostTold);
    EXPECT_TRUE(std::ranges::none_of(error.text, [](unsigned char c) { return c < ' ' || c == 0x7f; })) << error.text;
    return error.code;
  }

  static constexpr std::array<CallOne, 14> kCalls{add,         flip,  next_colour, halve, mirror,
                                                  integers,    greet, concatenate, fill,  reverse,
                                                  small_bytes, check, bad_result,  null};
  std::size_t next_ = 0;
};

/// A way to misbehave, and how calls may end then.
struct Misconduct {
  const char* name;
  std::set<Errc> ends;
};

const std::set<Errc> kGone{Errc::call_failed, Errc::binding_revoked};
const std::set<Errc> kNoAnswer{Errc::call_aborted};
const std::set<Errc> kBadValues{Errc::ok, Errc::bad_result, Errc::result_too_long, Errc::raised};
const std::set<Errc> kAnyEnd{Errc::ok,
                             Errc::call_failed,
                             Errc::call_aborted,
                             Errc::call_cancelled,
                             Errc::binding_revoked,
                             Errc::bad_procedure,
                             Errc::bad_handle,
                             Errc::bad_result,
                             Errc::argument_out_of_range,
                             Errc::argument_too_long,
                             Errc::exception_escaped,
                             Errc::raised,
                             Errc::result_too_long,
                             Errc::no_astack,
                             Errc::limit_reached,
                             Errc::not_permitted,
                             Errc::not_supported,
                             Errc::invalid_argument};

const std::vector<Misconduct> kMisconduct{
    {"silence", kNoAnswer},
    {"flags_that_flicker", kNoAnswer},
    {"scribbling", kAnyEnd},
    {"any_status", kAnyEnd},
    {"results_of_any_bits", kBadValues},
    {"results_that_change", kBadValues},
    {"results_too_long", kBadValues},
    {"holes", kAnyEnd},
    {"the_generation_before", kGone},
    {"the_generation_after", kGone},
    {"a_turn_that_is_none", kGone},
    {"abandonment", kGone},
    {"revocation", kGone},
    {"stolen_sleep", kBadValues},
    {"hanging_up", kGone},
    {"death", kGone},
};

/// A client of a hostile server, which is also the client of an honest one.
class HostileServer : public testing::TestWithParam<std::tuple<Misconduct, Gate, bool>> {
 protected:
  static constexpr std::chrono::milliseconds kCallTimeout{30};

  void SetUp() override {
    PrivateServer honest = start_private_server();
    auto client = Conformance::Client::import_over(std::move(honest.socket));
    ASSERT_TRUE(client) << client.error().message();
    honest_ = std::move(honest.process);
    bystander_ = std::make_unique<Bystander>(*std::move(client));
    before_ = open_descriptors();
  }
  void TearDown() override {
    if (bystander_ == nullptr || HasFatalFailure()) return;
    bystander_->call(50);
    EXPECT_TRUE(eventually([&] { return open_descriptors() <= before_; }))
        << before_ << " were open, now " << open_descriptors();
  }

  Process honest_;
  std::unique_ptr<Bystander> bystander_;
  std::size_t before_ = 0;
};

TEST_P(HostileServer, ends_every_call_of_its_client_with_an_error_or_a_conforming_value) {
  const auto& [misconduct, gate, watcher] = GetParam();
  auto ends = lrpc::shim::make_socket_pair();
  ASSERT_TRUE(ends);
  Process server({LRPC_HOSTILE_SERVER, std::to_string(ends->first.get()), misconduct.name, std::to_string(test_seed())},
                 {ends->first.get()});
  ends->first.reset();
  Conduct conduct;
  // Calls that time out, or whose caller sleeps until the timeout, are slow. So there are fewer of them.
  const int most_calls = rounds(std::string_view(misconduct.name) == "stolen_sleep" ? 50 : 400);
  const int most_aborted = rounds(12);
  int calls = 0;
  int aborted = 0;
  const auto enough = [&] { return calls >= most_calls || aborted >= most_aborted; };
  for (int binding = 0; binding < rounds(20) && !enough(); ++binding) {
    auto client = Conformance::Client::import_over(duplicate(ends->second.get()),
                                                   {.gate = gate, .call_timeout = kCallTimeout, .watcher = watcher});
    if (!client) {
      EXPECT_STREQ(misconduct.name, "death") << client.error().message();
      break;
    }
    for (int i = 0; i < 200 && !enough(); ++i) {
      const Errc end = conduct.call_next(*client);
      ++calls;
      if (end == Errc::call_aborted) ++aborted;
      // On a loaded machine any call may time out.
      EXPECT_TRUE(misconduct.ends.contains(end) || end == Errc::call_aborted) << lrpc::describe(end);
      if (HasFailure()) return;
      // The server may take back a status binding_revoked. But a binding that the client has ended stays revoked.
      if (client->binding().revoked()) {
        EXPECT_EQ(client->Null().code(), Errc::binding_revoked);
      }
      if (client->binding().revoked()) break;
    }
    bystander_->call();
  }
}

INSTANTIATE_TEST_SUITE_P(by, HostileServer,
                         testing::Combine(testing::ValuesIn(kMisconduct),
                                          testing::Values(Gate::adaptive, Gate::exchange, Gate::handoff),
                                          testing::Values(true)),
                         [](const auto& tested) {
                           const Gate gate = std::get<1>(tested.param);
                           return std::string(std::get<0>(tested.param).name) + (gate == Gate::exchange ? "_at_exchange"
                                                                                 : gate == Gate::handoff
                                                                                     ? "_at_handoff"
                                                                                     : "_at_any_gate");
                         });
INSTANTIATE_TEST_SUITE_P(unwatched_by, HostileServer,
                         testing::Combine(testing::ValuesIn(kMisconduct), testing::Values(Gate::adaptive),
                                          testing::Values(false)),
                         [](const auto& tested) { return std::get<0>(tested.param).name; });

TEST(HostileSilence, a_call_with_a_timeout_ends_also_when_no_astack_ever_comes_back) {
  auto ends = lrpc::shim::make_socket_pair();
  ASSERT_TRUE(ends);
  Process server({LRPC_HOSTILE_SERVER, std::to_string(ends->first.get()), "silence", "1"}, {ends->first.get()});
  auto client = Conformance::Client::import_over(std::move(ends->second), {.call_timeout = 20ms});
  ASSERT_TRUE(client) << client.error().message();
  // Five A-stacks in this class: after five calls all are in quarantine, and later calls time out waiting for one.
  for (int i = 0; i < 8; ++i) EXPECT_EQ(client->Null().code(), Errc::call_aborted) << i;
}

TEST(HostileSilence, killing_a_silent_server_ends_calls_without_a_timeout) {
  Errc end = Errc::binding_revoked;
  // If the server is dead before the call is made, try again.
  while (end == Errc::binding_revoked) {
    auto ends = lrpc::shim::make_socket_pair();
    ASSERT_TRUE(ends);
    Process server({LRPC_HOSTILE_SERVER, std::to_string(ends->first.get()), "flags_that_flicker", "1"},
                   {ends->first.get()});
    ends->first.reset();
    auto client = Conformance::Client::import_over(std::move(ends->second));
    ASSERT_TRUE(client) << client.error().message();
    std::thread killer([&] {
      std::this_thread::sleep_for(100ms);
      server.kill_and_wait();
    });
    end = client->Null().code();
    killer.join();
  }
  EXPECT_EQ(end, Errc::call_failed);
}

}  // namespace
}  // namespace testing_lrpc
