// What becomes a Result, and what does not.
#include "lrpc/shim/result.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "lrpc/shim/fd.h"
#include "lrpc/shim/value.h"

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

// A Result is no value of another Result: its error would be lost.
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

// What takes a cast is refused.
static_assert(refuses<Result<Handle<ResultTag>>, int>);
static_assert(refuses<Result<Handle<ResultTag>>, std::uint64_t>);
static_assert(refuses<Result<UniqueFd>, int>);
static_assert(refuses<Result<Colour>, int>);
static_assert(refuses<Result<std::uint8_t>, Colour>);
static_assert(refuses<Result<std::string>, std::string_view>);
static_assert(refuses<Result<std::vector<int>>, std::size_t>);
static_assert(refuses<Result<std::unique_ptr<int>>, int*>);

// What becomes the value unchanged is taken.
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

}  // namespace
}  // namespace lrpc
