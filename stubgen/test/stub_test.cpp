// Conformance of generated stubs: every type, both ways, through a client stub and an entry stub.
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "files.client.h"
#include "files.server.h"
#include "types_server.h"

namespace lrpc_test {
namespace {

using lrpc::Errc;
using Stubs = Bound;

std::vector<std::byte> pattern(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
  return bytes;
}

TEST_F(Stubs, carry_every_integer_at_its_limits) {
  const auto low =
      client().Integers(-128, std::numeric_limits<std::int16_t>::min(), std::numeric_limits<std::int32_t>::min(),
                        std::numeric_limits<std::int64_t>::min(), 0, 0, 0, 0);
  ASSERT_TRUE(low);
  EXPECT_EQ(low->d2, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(low->a2, -128);
  const auto high = client().Integers(127, 1, 2, 3, 255, 65535, 4'000'000'000U, ~std::uint64_t{0});
  ASSERT_TRUE(high);
  EXPECT_EQ(high->h2, ~std::uint64_t{0});
  EXPECT_EQ(high->g2, 4'000'000'000U);
  EXPECT_EQ(high->f2, 65535);
}

TEST_F(Stubs, carry_floats_bools_and_bytes) {
  double b = 2.5;
  EXPECT_EQ(*client().Floats(1.25F, b), 2.5F);
  EXPECT_EQ(b, -2.5);
  bool flag = true;
  const auto bits = client().Bits(true, flag, std::byte{0xfe});
  ASSERT_TRUE(bits);
  EXPECT_TRUE(bits->d);
  EXPECT_FALSE(flag);
  EXPECT_EQ(bits->e, std::byte{0xfe});
}

TEST_F(Stubs, that_are_started_give_their_results_when_they_are_finished) {
  double b = 2.5;
  auto floats = client().start().Floats(1.25F, b);
  EXPECT_EQ(b, 2.5);
  EXPECT_EQ(*floats.finish(), 2.5F);
  EXPECT_EQ(b, -2.5);
  EXPECT_EQ(client().start().Upper("eleven long").finish().code(), Errc::argument_too_long);
}

TEST_F(Stubs, that_ask_all_members_give_each_ones_results_and_errors) {
  const auto low = client().all().Integers(-128, 1, 2, 3, 4, 5, 6, 7);
  ASSERT_TRUE(low);
  ASSERT_EQ(low->replies.size(), low->members);
  for (const auto& [who, result] : low->replies) {
    ASSERT_TRUE(result);
    EXPECT_EQ(result->a2, -128);
  }
  EXPECT_EQ(client().all().Upper("eleven long")->replies.front().result.code(), Errc::argument_too_long);
}

TEST_F(Stubs, carry_enums_and_ranges) {
  T::Sparse sparse = T::Sparse::Negative;
  const auto enums = client().Enums(T::Small::Two, sparse, T::Wide::Last);
  ASSERT_TRUE(enums);
  EXPECT_EQ(sparse, T::Sparse::Large);
  EXPECT_EQ(enums->e, T::Low::Lowest);
  T::Month month = 12;
  EXPECT_EQ(*client().Ranges(100, month, -1, 5, 4), 100);
  EXPECT_EQ(month, 1);
}

TEST_F(Stubs, refuse_arguments_that_do_not_conform_before_they_ring) {
  T::Sparse sparse = T::Sparse::None;
  T::Month month = 1;
  T::Outer a = sample(1);
  T::Outer b = sample(2);
  EXPECT_EQ(client().Enums(static_cast<T::Small>(3), sparse, T::Wide::First).code(), Errc::argument_out_of_range);
  EXPECT_EQ(client().Ranges(101, month, -1, 0, 1).code(), Errc::argument_out_of_range);
  EXPECT_EQ(client().Ranges(1, month, 0, 0, 1).code(), Errc::argument_out_of_range);
  EXPECT_EQ(client().Ranges(1, month, -1, 0, 5).code(), Errc::argument_out_of_range);
  month = 13;
  EXPECT_EQ(client().Ranges(1, month, -1, 0, 1).code(), Errc::argument_out_of_range);
  a.inner[1].when = 0;
  EXPECT_EQ(client().Records(a, b).code(), Errc::argument_out_of_range);
  EXPECT_EQ(client().Upper("eleven long").code(), Errc::argument_too_long);
  EXPECT_EQ(client().Upper("ten digits").code(), Errc::ok);
  const auto bytes = pattern(101);
  std::vector<std::byte> room(3000);
  lrpc::Buffer c(room, 0);
  lrpc::Buffer d(room);
  lrpc::Buffer e(room);
  EXPECT_EQ(client().Bytes(bytes, {}, c, d, e).code(), Errc::argument_too_long);
  c = lrpc::Buffer(room, 2001);
  EXPECT_EQ(client().Bytes({}, {}, c, d, e).code(), Errc::argument_too_long);
  EXPECT_EQ(binding().calls, 1U);
}

TEST_F(Stubs, name_the_procedure_and_the_argument_that_they_refuse) {
  T::Sparse sparse = T::Sparse::None;
  T::Month month = 1;
  T::Outer a = sample(1);
  T::Outer b = sample(2);
  a.inner[1].when = 0;
  std::array<std::array<std::uint16_t, 3>, 2> grid{};
  const auto small = static_cast<T::Small>(3);
  for (const bool remote : {false, true}) {
    binding().remote_bit = remote;
    EXPECT_EQ(client().Enums(small, sparse, T::Wide::First).error().message(), "Types.Enums: 'a' is no value of Small");
    EXPECT_EQ(client().Ranges(101, month, -1, 0, 1).error().message(), "Types.Ranges: 'a' is not in 0 .. 100");
    EXPECT_EQ(client().Ranges(1, month, 0, 0, 1).error().message(),
              "Types.Ranges: 'c' is not in -9223372036854775808 .. -1");
    EXPECT_EQ(client().Records(a, b).error().message(), "Types.Records: a field of 'a' does not conform to Outer");
    EXPECT_EQ(client().Arrays({}, grid, {1, 13, 1}, {}, {}, {}).error().message(),
              "Types.Arrays: an element of 'c' is not in 1 .. 12");
    EXPECT_EQ(client().Arrays({}, grid, {1, 1, 1}, {{{T::Small::One, small}, {}}}, {}, {}).error().message(),
              "Types.Arrays: an element of 'd' is no value of Small");
    EXPECT_EQ(client().Upper("eleven long").error().message(), "Types.Upper: 'a' is longer than 10 bytes");
  }
  EXPECT_EQ(client().start().Upper("eleven long").finish().error().message(),
            "Types.Upper: 'a' is longer than 10 bytes");
  EXPECT_EQ(client().start().Ranges(101, month, -1, 0, 1).finish().error().message(),
            "Types.Ranges: 'a' is not in 0 .. 100");
  EXPECT_EQ(binding().calls, 0U);
}

TEST_F(Stubs, name_the_buffer_that_is_too_small) {
  std::vector<std::byte> room(3000);
  std::array<std::byte, 1> no_room{};
  for (const bool large : {false, true}) {
    lrpc::Buffer b(large ? std::span<std::byte>(room) : std::span<std::byte>(no_room));
    const auto echoed = client().Echo(pattern(2), b);
    EXPECT_EQ(echoed.has_value(), large);
    EXPECT_EQ(echoed.error().message(), large ? "ok" : "Types.Echo: 'b' does not fit the caller's buffer");
  }
}

TEST_F(Stubs, carry_records_of_everything) {
  const T::Outer a = sample(1);
  T::Outer b = sample(2);
  const auto c = client().Records(a, b);
  ASSERT_TRUE(c);
  EXPECT_EQ(*c, sample(2));
  EXPECT_EQ(b, a);
}

TEST_F(Stubs, write_no_stale_byte_into_padding_or_behind_short_strings) {
  // A record's image depends on its value only: otherwise stale bytes of earlier calls would travel over the network.
  std::vector<std::byte> first(sizeof(T::Outer) * 2, std::byte{0xaa});
  std::vector<std::byte> second(sizeof(T::Outer) * 2, std::byte{0x55});
  T::layout::put_Outer<lrpc::CopyCode::A>(first.data(), sample(3));
  T::layout::put_Outer<lrpc::CopyCode::A>(second.data(), sample(3));
  std::size_t written = 0;
  while (written < first.size() && first[written] == second[written]) ++written;
  EXPECT_EQ(written, 256U);
  T::Outer copy;
  EXPECT_TRUE(T::layout::get_Outer<lrpc::CopyCode::E>(first.data(), copy));
  EXPECT_EQ(copy, sample(3));
}

TEST_F(Stubs, carry_arrays_of_everything) {
  std::array<std::array<std::uint16_t, 3>, 2> grid{{{1, 2, 3}, {4, 5, 6}}};
  const auto result = client().Arrays({1, 2, 3, 4}, grid, {1, 6, 12},
                                      {{{T::Small::Zero, T::Small::One}, {T::Small::Two, T::Small::Two}}},
                                      {true, false, true}, {"first", "second"});
  ASSERT_TRUE(result);
  EXPECT_EQ(grid[1][2], 4);
  EXPECT_EQ(grid[0][1], 2);
  EXPECT_EQ(result->g, (std::array<T::Month, 2>{1, 6}));
  EXPECT_EQ(result->h, (T::Months{1, 6, 12}));
  EXPECT_EQ(result->i, (std::array<T::Label, 2>{"second", "first"}));
  EXPECT_EQ(*client().Count(result->j), 0U);
}

TEST_F(Stubs, leave_uninterpreted_arrays_where_they_are) {
  std::array<std::byte, 16> b{};
  EXPECT_EQ(*client().InPlace({1, 2, 3, 4, 5, 6, 7, 8}, b), 36U);
  EXPECT_EQ(b[15], std::byte{9});
}

TEST_F(Stubs, carry_strings_inline_and_through_the_tail) {
  for (const std::size_t size : {0U, 1U, 100U, 1000U, 2999U, 3000U, 5000U}) {
    lrpc::String<5000> b(std::string(size, 'b'));
    const auto result = client().Text(std::string(std::min<std::size_t>(size, 100), 'a'), b, "label");
    ASSERT_TRUE(result) << size;
    EXPECT_EQ(result->d.view(), std::string(std::min<std::size_t>(size, 3000), 'b'));
    EXPECT_EQ(result->e.view(), "label");
    EXPECT_EQ(b.view(), std::string(std::min<std::size_t>(size, 100), 'a'));
  }
  EXPECT_EQ(client().Upper("small")->view(), "SMALL");
}

TEST_F(Stubs, carry_bytes_of_every_size) {
  for (const std::size_t size : {0U, 1U, 50U, 100U, 1999U, 2000U, 4000U}) {
    const auto a = pattern(std::min<std::size_t>(size, 100));
    const auto b = pattern(size);
    std::vector<std::byte> c_room(2000), d_room(50), e_room(9000);
    lrpc::Buffer c(c_room, std::min<std::size_t>(size, 2000));
    lrpc::Buffer d(d_room);
    lrpc::Buffer e(e_room);
    const std::size_t length = a.size() + b.size() + c.size();
    const auto result = client().Bytes(a, b, c, d, e);
    ASSERT_TRUE(result) << size;
    EXPECT_EQ(*result, length);
    EXPECT_TRUE(std::equal(b.begin(), b.end(), e.contents().begin(), e.contents().end()));
    EXPECT_EQ(c.size(), std::min<std::size_t>(size, 2000));
    EXPECT_TRUE(std::equal(c.contents().begin(), c.contents().end(), b.begin()));
    EXPECT_EQ(d.size(), std::min<std::size_t>(size, 50));
  }
}

TEST_F(Stubs, hand_uninterpreted_bytes_to_the_procedure_in_place) {
  for (const std::size_t size : {0U, 10U, 1400U, 4000U}) {
    const auto a = pattern(size);
    std::vector<std::byte> room(4000);
    lrpc::Buffer b(room, 4000 - size);
    ASSERT_TRUE(client().BytesInPlace(a, b)) << size;
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.contents().begin(), b.contents().end()));
  }
}

TEST_F(Stubs, tell_a_result_that_is_too_long_for_the_callers_buffer_and_change_nothing) {
  std::vector<std::byte> room(10, std::byte{7});
  lrpc::Buffer small(room, 3);
  EXPECT_EQ(client().Echo(pattern(11), small).code(), Errc::result_too_long);
  EXPECT_EQ(small.size(), 3U);
  EXPECT_EQ(room, std::vector<std::byte>(10, std::byte{7}));
  std::vector<std::byte> d_room(50), e_room(5), c_room(10);
  lrpc::Buffer c(c_room, 10);
  lrpc::Buffer d(d_room);
  lrpc::Buffer e(e_room);
  EXPECT_EQ(client().Bytes(pattern(20), pattern(10), c, d, e).code(), Errc::result_too_long);
  EXPECT_EQ(d.size(), 0U) << "the first of two buffers was written although the second does not fit";
}

TEST_F(Stubs, return_out_parameters_behind_the_results) {
  std::vector<std::byte> room(16);
  lrpc::Buffer c(room);
  const auto result = client().OutParameters(40, c);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->d, 41);
  EXPECT_EQ(result->b, 42);
  EXPECT_EQ(c.contents()[0], std::byte{40});
}

TEST_F(Stubs, carry_declared_errors_with_their_fields) {
  EXPECT_NE(client().Start(0).raised<T::Busy>(), nullptr);
  types_.refusal.at = sample(9);
  const auto refused = client().Start(2000);
  EXPECT_EQ(refused.code(), Errc::raised);
  ASSERT_NE(refused.raised<T::Refused>(), nullptr);
  EXPECT_EQ(*refused.raised<T::Refused>(), types_.refusal);
  EXPECT_NE(client().Fail().raised<T::Busy>(), nullptr);
  types_.refusal.code = 101;
  EXPECT_EQ(client().Start(2000).code(), Errc::bad_result);
}

TEST_F(Stubs, resolve_and_close_handles_by_type) {
  const auto session = client().Start(17);
  ASSERT_TRUE(session);
  EXPECT_EQ(*client().Count(*session), 17U);
  const auto cursor = client().MakeCursor(*session);
  ASSERT_TRUE(cursor);
  EXPECT_EQ(client().Count(T::Session{cursor->value}).code(), Errc::bad_handle) << "a handle of another type was taken";
  EXPECT_EQ(client().Count(T::Session{}).code(), Errc::bad_handle);
  EXPECT_EQ(client().Swap(*session, T::Cursor{}).code(), Errc::bad_handle);
  EXPECT_EQ(*client().Count(*session), 17U) << "a refused call closed a handle";
  const auto swapped = client().Swap(*session, *cursor);
  ASSERT_TRUE(swapped);
  EXPECT_EQ(client().Count(*session).code(), Errc::bad_handle);
  EXPECT_EQ(*client().Count(*swapped), 17U);
}

TEST_F(Stubs, turn_whatever_goes_wrong_into_one_code) {
  EXPECT_EQ(client().Throw().code(), Errc::exception_escaped);
  binding().astacks_in_use = true;
  EXPECT_EQ(client().Throw().code(), Errc::no_astack);
}

TEST_F(Stubs, move_the_same_bytes_when_the_remote_bit_is_set) {
  binding().remote_bit = true;
  T::Sparse sparse = T::Sparse::None;
  EXPECT_TRUE(client().Enums(T::Small::One, sparse, T::Wide::First));
  EXPECT_EQ(client().Throw().code(), Errc::exception_escaped);
  EXPECT_EQ(binding().remote_calls, 2U);
  EXPECT_EQ(client().Enums(static_cast<T::Small>(77), sparse, T::Wide::First).code(), Errc::argument_out_of_range);
  EXPECT_EQ(binding().remote_calls, 2U) << "what does not conform stays here";
  binding().astacks_in_use = true;
  EXPECT_EQ(client().Throw().code(), Errc::no_astack);
}

TEST_F(Stubs, never_send_a_result_that_breaks_its_own_declaration) {
  types_.bad_result = true;
  T::Sparse sparse = T::Sparse::None;
  EXPECT_EQ(client().Enums(T::Small::One, sparse, T::Wide::First).code(), Errc::bad_result);
  EXPECT_EQ(sparse, T::Sparse::None);
  T::Month month = 2;
  EXPECT_EQ(client().Ranges(1, month, -1, 0, 1).code(), Errc::bad_result);
  EXPECT_EQ(month, 2);
  T::Outer b = sample(2);
  EXPECT_EQ(client().Records(sample(1), b).code(), Errc::bad_result);
  EXPECT_EQ(b, sample(2));
  std::vector<std::byte> room(9000);
  lrpc::Buffer c(room, 0), d(room), e(room);
  EXPECT_EQ(client().Bytes({}, {}, c, d, e).code(), Errc::bad_result);
}

TEST_F(Stubs, bind_only_to_the_interface_they_were_made_from) {
  lrpc::Server files;
  EXPECT_EQ(T::Client::import("nothing").code(), Errc::name_unknown);
  static constexpr lrpc::Pdl kOther{
      .interface = {.name = "Types", .major = 2, .minor = 3, .hash = 1}, .classes = {}, .procedures = {}, .text = {}};
  (void)files.export_interface("other", kOther, {}, nullptr);
  EXPECT_EQ(T::Client::import("other", {.server = &files}).code(), Errc::hash_mismatch);
  ASSERT_TRUE(T::serve_over(server_, lrpc::UniqueFd(), types_));
  EXPECT_TRUE(T::Client::import_over(lrpc::UniqueFd(), {.server = &server_}));
}

}  // namespace
}  // namespace lrpc_test
