// Hostile peers: random bytes on the A-stack go through every entry stub and every client stub. TypesServer and the
// checks below verify that accepted values conform to their declarations. Sanitizers verify that no access leaves its
// bounds.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "length.h"
#include "types_server.h"

namespace lrpc_test {
namespace {

using lrpc::Errc;

/// Fills an A-stack with random bytes. Many are small, because small numbers pass more checks than large ones.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : random_(static_cast<std::uint32_t>(seed)) {}
  void fill(std::span<std::byte> bytes) {
    const unsigned style = random_() % 4;
    for (std::byte& byte : bytes) {
      const unsigned value = static_cast<unsigned>(random_());
      byte = static_cast<std::byte>(style == 0              ? value
                                    : style == 1            ? value % 2
                                    : (value >> 8) % 4 == 0 ? value % 16
                                                            : 0);
    }
  }
  void fill(lrpc::CallContext& context) {
    fill(context.image_bytes(1484));
    fill(context.tail_bytes().first(std::min<std::size_t>(context.tail_bytes().size(), 64)));
  }
  unsigned operator()() { return static_cast<unsigned>(random_()); }

 private:
  std::mt19937 random_;
};

const int kRounds = testing_lrpc::rounds(375);

class Hostile : public Bound {};

TEST_F(Hostile, images_through_every_entry_stub_reach_no_procedure_unless_they_conform) {
  Noise noise(testing_lrpc::test_seed());
  std::size_t returned = 0;
  for (int round = 0; round < kRounds; ++round) {
    // NOLINTNEXTLINE(bugprone-too-small-loop-variable): procedures have numbers of 16 bits
    for (std::uint16_t procedure = 0; procedure < T::kPdl.procedures.size(); ++procedure) {
      noise.fill(binding().context());
      const std::uint16_t status = binding().enter(procedure);
      returned += status == 0 ? 1 : 0;
      EXPECT_TRUE(status == 0 || (status >= 1 && status <= 2) || (status & lrpc::shim::call_status::kFailed) != 0);
    }
  }
  EXPECT_GT(returned, static_cast<std::size_t>(kRounds)) << "the noise is too wild to test anything";
}

TEST_F(Hostile, length_words_at_and_over_every_bound_are_told_apart) {
  const auto& parameter = T::layout::kText_b;
  for (const std::uint32_t in_tail : {0U, lrpc::VariableParameter::kInTail}) {
    for (const std::uint32_t size :
         {0U, 1U, parameter.inline_capacity, parameter.inline_capacity + 1, 5000U, 5001U, 0x7fff'ffffU}) {
      std::fill_n(binding().context().image(), 1484, std::byte{0});
      lrpc::put_scalar<lrpc::CopyCode::A>(binding().context().image() + parameter.length_offset, size | in_tail);
      const bool fits = size <= (in_tail != 0 ? 5000U : parameter.inline_capacity);
      EXPECT_EQ(binding().enter(8), fits ? 0 : lrpc::server::failed(Errc::argument_too_long)) << size << " " << in_tail;
    }
  }
}

TEST_F(Hostile, bools_enums_and_ranges_are_refused_at_the_door) {
  auto* const image = binding().context().image();
  std::fill_n(image, 64, std::byte{0});
  image[0] = std::byte{2};
  EXPECT_EQ(binding().enter(2), lrpc::server::failed(Errc::argument_out_of_range));
  image[0] = std::byte{3};
  EXPECT_EQ(binding().enter(3), lrpc::server::failed(Errc::argument_out_of_range));
  image[0] = std::byte{101};
  EXPECT_EQ(binding().enter(4), lrpc::server::failed(Errc::argument_out_of_range));
}

/// Calls every client stub once against a server that answers with noise, and checks the results that are accepted.
void call_everything(T::Client& client, Noise& noise) {
  (void)client.Integers(1, 2, 3, 4, 5, 6, 7, 8);
  bool flag = true;
  if (const auto bits = client.Bits(true, flag, std::byte{1})) {
    EXPECT_TRUE(good(bits->d));
  }
  EXPECT_TRUE(good(flag));
  T::Sparse sparse = T::Sparse::None;
  if (const auto enums = client.Enums(T::Small::One, sparse, T::Wide::First)) {
    EXPECT_TRUE(good(enums->d) && good(enums->e));
  }
  EXPECT_TRUE(good(sparse));
  T::Month month = 3;
  if (const auto ranges = client.Ranges(1, month, -1, 0, 1)) {
    EXPECT_LE(*ranges, 100);
  }
  EXPECT_TRUE(good_month(month));
  T::Outer outer = sample(1);
  const auto records = client.Records(sample(2), outer);
  if (records) {
    EXPECT_TRUE(good(*records));
  } else {
    EXPECT_EQ(outer, sample(1));
  }
  EXPECT_TRUE(good(outer));
  std::array<std::array<std::uint16_t, 3>, 2> grid{};
  if (const auto arrays = client.Arrays({}, grid, {1, 2, 3}, {}, {}, {})) {
    EXPECT_TRUE(std::all_of(arrays->g.begin(), arrays->g.end(), good_month) && good(arrays->i));
    EXPECT_TRUE(std::all_of(arrays->h.begin(), arrays->h.end(), good_month));
  }
  lrpc::String<5000> text("text");
  if (const auto texts = client.Text("a", text, "b")) {
    EXPECT_TRUE(good(texts->d) && good(texts->e));
  }
  EXPECT_TRUE(good(text));
  std::vector<std::byte> room(noise() % 3000), more(noise() % 60), most(noise() % 9000);
  lrpc::Buffer c(room, room.size() > 2000 ? 0 : room.size()), d(more), e(most);
  (void)client.Bytes({}, {}, c, d, e);
  EXPECT_TRUE(c.size() <= room.size() && d.size() <= more.size() && e.size() <= most.size());
  (void)client.Echo({}, c);
  lrpc::Buffer out(more);
  (void)client.OutParameters(1, out);
  const auto started = client.Start(1);
  if (const auto* refused = started.raised<T::Refused>()) {
    EXPECT_TRUE(good(refused->at) && refused->code <= 100 && good(refused->why));
  }
}

TEST_F(Hostile, handles_of_a_call_are_all_closed_or_none) {
  const auto one = client().Start(1);
  const auto other = client().Start(2);
  ASSERT_TRUE(one && other);
  const auto cursor = client().MakeCursor(*one);
  ASSERT_TRUE(cursor);
  EXPECT_EQ(client().Join(*cursor, *one, T::Session{}).code(), Errc::bad_handle);
  EXPECT_EQ(client().Join(*cursor, *one, *one).code(), Errc::bad_handle) << "one handle was closed twice";
  EXPECT_EQ(client().Join(*cursor, *one, T::Session{cursor->value}).code(), Errc::bad_handle);
  EXPECT_EQ(*client().Count(*one), 1U) << "a refused call closed a handle";
  EXPECT_EQ(client().Join(*cursor, *one, *other).value(), 3U);
  EXPECT_EQ(client().Join(*cursor, *one, *other).code(), Errc::bad_handle);
  EXPECT_EQ(client().Count(*one).code(), Errc::bad_handle);
  EXPECT_EQ(client().Count(*other).code(), Errc::bad_handle);
}

TEST_F(Hostile, results_through_every_client_stub_reach_no_caller_unless_they_conform) {
  Noise noise(testing_lrpc::test_seed());
  std::size_t returned = 0;
  binding().instead = [&](lrpc::CallContext& context, std::uint16_t /*procedure*/) -> std::uint16_t {
    noise.fill(context);
    const unsigned pick = noise() % 8;
    ++returned;
    return pick < 5 ? std::uint16_t{0} : static_cast<std::uint16_t>(pick == 5 ? 1 : pick == 6 ? 2 : noise());
  };
  for (int round = 0; round < kRounds; ++round) call_everything(client(), noise);
  EXPECT_GT(returned, static_cast<std::size_t>(kRounds));
}

TEST_F(Hostile, arguments_that_change_after_the_client_checked_them_are_checked_again_by_the_server) {
  Noise noise(testing_lrpc::test_seed());
  binding().before_call = [&](lrpc::CallContext& context) { noise.fill(context.image_bytes(8 + noise() % 100)); };
  for (int round = 0; round < kRounds; ++round) call_everything(client(), noise);
}

TEST_F(Hostile, results_outside_their_declaration_are_bad_results) {
  const auto answer_with = [&](std::byte value) {
    binding().instead = [value](lrpc::CallContext& context, std::uint16_t /*procedure*/) -> std::uint16_t {
      std::ranges::fill(context.image_bytes(1484), value);
      return 0;
    };
  };
  bool flag = true;
  T::Sparse sparse = T::Sparse::None;
  T::Month month = 3;
  lrpc::String<5000> text("text");
  answer_with(std::byte{0xee});  // an invalid bool and enum value, above each range, and a length above each bound
  EXPECT_EQ(client().Bits(true, flag, std::byte{1}).code(), Errc::bad_result);
  EXPECT_EQ(client().Enums(T::Small::One, sparse, T::Wide::First).code(), Errc::bad_result);
  EXPECT_EQ(client().Ranges(1, month, -1, 0, 1).code(), Errc::bad_result);
  EXPECT_EQ(client().Text("a", text, "b").code(), Errc::bad_result);
  EXPECT_TRUE(flag && sparse == T::Sparse::None && month == 3 && text.view() == "text") << "unchanged";
}

}  // namespace
}  // namespace lrpc_test
