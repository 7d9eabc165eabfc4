// What converts to a Result, and what does not.
#include "lrpc/detail/shim/result.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "lrpc/detail/shim/call/value.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc {
namespace {

struct ResultTag {};
struct NotFound {};
enum class Colour : std::uint8_t { red };

/// Whether `return u;` compiles in a function that returns R.
template <class R, class U>
constexpr bool returns = std::is_constructible_v<R, U>&& std::is_convertible_v<U, R>;
template <class R, class U>
constexpr bool refuses = !std::is_constructible_v<R, U> && !std::is_convertible_v<U, R>;

// A Result does not become the value of another Result: its error would be lost.
static_assert(refuses<Result<bool>, Status>);
static_assert(refuses<Result<bool>, const Status&>);
static_assert(refuses<Result<bool>, Result<int>>);
static_assert(refuses<Result<bool>, Result<bool, NotFound>>);
static_assert(refuses<Result<bool, NotFound>, Result<bool>>);
static_assert(refuses<Result<std::optional<bool>>, Status>);
static_assert(refuses<Status, Result<int>>);

// A number that might not fit is refused.
static_assert(refuses<Result<std::uint8_t>, int>);
static_assert(refuses<Result<std::uint32_t>, int>);
static_assert(refuses<Result<std::uint32_t>, std::uint64_t>);
static_assert(refuses<Result<int>, double>);
static_assert(refuses<Result<bool>, int>);
static_assert(refuses<Result<bool>, const char*>);
static_assert(refuses<Result<float>, double>);

// A value that needs a cast is refused.
static_assert(refuses<Result<Handle<ResultTag>>, int>);
static_assert(refuses<Result<Handle<ResultTag>>, std::uint64_t>);
static_assert(refuses<Result<UniqueFd>, int>);
static_assert(refuses<Result<Colour>, int>);
static_assert(refuses<Result<std::uint8_t>, Colour>);
static_assert(refuses<Result<std::string>, std::string_view>);
static_assert(refuses<Result<std::vector<int>>, std::size_t>);
static_assert(refuses<Result<std::unique_ptr<int>>, int*>);

// A value that converts without loss is taken.
static_assert(returns<Result<bool>, bool>);
static_assert(returns<Result<std::uint64_t>, std::uint32_t>);
static_assert(returns<Result<double>, float>);
static_assert(returns<Result<std::string>, const char*>);
static_assert(returns<Result<std::optional<int>>, std::nullopt_t>);
static_assert(returns<Result<std::unique_ptr<const int>>, std::unique_ptr<int>>);
static_assert(returns<Result<std::unique_ptr<int>>, std::nullptr_t>);
static_assert(returns<Result<Handle<ResultTag>>, Handle<ResultTag>>);
static_assert(returns<Result<UniqueFd>, UniqueFd>);
static_assert(returns<Result<bool>, Error> && returns<Result<bool>, Errc> && returns<Status, Errc>);
static_assert(returns<Result<bool, NotFound>, Raise<NotFound>> && refuses<Result<bool>, Raise<NotFound>>);

TEST(ResultTest, a_value_is_kept_unchanged) {
  const Result<std::uint64_t> result = std::uint32_t{7};
  ASSERT_TRUE(result);
  EXPECT_EQ(*result, 7U);
  EXPECT_EQ(result.code(), Errc::ok);
}

TEST(ResultTest, an_error_without_a_text_says_what_its_code_means) {
  EXPECT_EQ(Error{Errc::name_unknown}.message(), describe(Errc::name_unknown));  // nor may a compiler warn of it
}

TEST(ResultTest, value_of_an_error_prints_its_text_and_the_line_and_aborts) {
  const Result<int> failed = Error{Errc::system_error, "open: no such file"};
  EXPECT_DEATH((void)failed.value(),
               "value of a failed Result was taken at .*result_test.cpp:[0-9]+: open: no such file");
  EXPECT_DEATH((void)Result<int>(failed).value(), "result_test.cpp:[0-9]+: open: no such file");
  const Status status = Errc::no_nameserver;
  EXPECT_DEATH((void)status.value(), "result_test.cpp:[0-9]+: no nameserver");
}

TEST(ResultTest, operators_on_an_error_print_its_text_and_the_code_address_and_abort) {
  Result<std::string> failed = Errc::bad_handle;
  const std::string expected = "taken at .*shim_test\\+0x[0-9a-f]+: " + std::string(describe(Errc::bad_handle)) +
                               "\n.*`addr2line -Cfie .*shim_test 0x[0-9a-f]+`";
  EXPECT_DEATH((void)*failed, expected);
  EXPECT_DEATH((void)*std::as_const(failed), expected);
  EXPECT_DEATH((void)*std::move(failed), expected);
  EXPECT_DEATH((void)failed->size(), expected);  // NOLINT(bugprone-use-after-move): a child moved it, which is dead
  EXPECT_DEATH((void)std::as_const(failed)->size(), expected);
}

TEST(ResultTest, taking_the_value_of_a_raised_error_aborts) {
  const Result<int, NotFound> raised = raise(NotFound{});
  EXPECT_DEATH((void)*raised, "shim_test\\+0x[0-9a-f]+: the procedure raised lrpc::.*::NotFound\n");
  EXPECT_DEATH((void)raised.value(), "result_test.cpp:[0-9]+: the procedure raised lrpc::.*::NotFound\n");
}

TEST(ResultTest, the_error_of_a_raised_error_names_it) {
  struct Refused {};
  const Result<int, Refused, NotFound> raised = raise(NotFound{});
  EXPECT_EQ(raised.error().code, Errc::raised);
  const std::string text = raised.error().message();
  EXPECT_TRUE(text.starts_with("the procedure raised lrpc::") && text.ends_with("::NotFound")) << text;
  const Result<int, Refused, NotFound> failed = Error{Errc::system_error, "open: no such file"};
  EXPECT_EQ(failed.error().message(), "open: no such file");
}

/// From here on malloc(3) gets no more memory from the kernel.
void allow_no_more_memory() {
  const rlimit none{0, 0};
  (void)setrlimit(RLIMIT_AS, &none);
}

TEST(ResultTest, taking_the_value_of_an_error_prints_its_text_without_memory_for_a_copy) {
  constexpr std::size_t kMoreThanTheHeapKeeps = std::size_t{40} << 20;  // malloc(3) maps this much anew each time
  std::string text = "open: no such file";
  text.resize(kMoreThanTheHeapKeeps);  // with zeros, which are not printed
  const Result<int> failed = Error{Errc::system_error, std::move(text)};
  EXPECT_DEATH((allow_no_more_memory(), (void)failed.value()), "result_test.cpp:[0-9]+: open: no such file");
  EXPECT_DEATH((allow_no_more_memory(), (void)*failed), "\\+0x[0-9a-f]+: open: no such file");
}

struct Chain {
  Result<std::unique_ptr<Chain>> next = Errc::name_unknown;
  int number = 0;
};

TEST(ResultTest, a_part_of_its_value_can_take_its_place) {
  Result<std::unique_ptr<Chain>> first(std::make_unique<Chain>());
  (*first)->next = std::make_unique<Chain>();
  (*(*first)->next)->number = 2;
  first = std::move((*first)->next);
  EXPECT_EQ((*first)->number, 2);
}

struct ThrowsWhenMoved {
  ThrowsWhenMoved() = default;
  // NOLINTNEXTLINE(bugprone-exception-escape, performance-noexcept-move-constructor): for that it is here
  ThrowsWhenMoved(ThrowsWhenMoved&& other) : moves(other.moves + 1) {
    if (moves == 2) throw 1;
  }
  int moves = 0;
};

TEST(ResultTest, holds_an_error_or_its_value_when_a_move_throws) {
  Result<ThrowsWhenMoved> to = Errc::name_unknown;
  Result<ThrowsWhenMoved> from = ThrowsWhenMoved();
  EXPECT_THROW(to = std::move(from), int);
  EXPECT_FALSE(to);
}

struct Hidden {
  void operator&() const = delete;
  int number;
};
struct Immovable {
  Immovable(Immovable&&) = delete;
};

TEST(ResultTest, moves_and_copies_what_its_value_can) {
  const Result<Hidden> hidden(Hidden{1});
  const Result<Hidden> copy = hidden;  // NOLINT(performance-unnecessary-copy-initialization): that it can be made
  EXPECT_EQ(copy->number, 1);
  Result<const int> constant(3);
  EXPECT_EQ(*Result<const int>(std::move(constant)), 3);
  static_assert(!std::is_move_constructible_v<Result<Immovable>>);
  static_assert(!std::is_copy_constructible_v<Result<std::unique_ptr<int>>>);
  static_assert(std::is_nothrow_move_assignable_v<Result<std::unique_ptr<int>>>);
  static_assert(!std::is_nothrow_move_assignable_v<Result<ThrowsWhenMoved>>);
}

TEST(SystemError, names_the_call_and_its_errno) {
  EXPECT_EQ(system_error("open", ENOENT).code, Errc::system_error);
  EXPECT_EQ(system_error("open", ENOENT).message(), "open: No such file or directory");
}

}  // namespace
}  // namespace lrpc
