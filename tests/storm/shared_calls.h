// Calls that the interfaces Storm and Remote have in common: what is passed, and what must come back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lrpc/client.h"
#include "made_call.h"
#include "random.h"

namespace lrpc::storm {

/// Each function makes one call, or several that belong together. False: the binding is of no further use.
template <class Client, class Refused>
struct SharedCalls {
  static bool add(Client& client, const Terms& terms, Random& random) {
    const auto a = static_cast<std::int32_t>(random.below(1'000'000));
    const auto b = static_cast<std::int32_t>(random.below(1'000'000));
    const MadeCall made("Add", client.binding());
    const auto sum = client.Add(made.number(), a, b);
    return made.judge(sum, terms, sum && *sum == a + b);
  }

  static bool check(Client& client, const Terms& terms, Random& random) {
    const std::uint32_t value = random.below(1'000'000);
    const MadeCall made("Check", client.binding());
    const auto doubled = client.Check(made.number(), value);
    if (const auto* refused = doubled.template raised<Refused>())
      return made.answered(value % 2 == 1 && refused->reason == 7 && refused->call == made.number());
    return made.judge(doubled, terms, doubled && value % 2 == 0 && *doubled == 2 * value);
  }

  static bool fill(Client& client, const Terms& terms, Random& random, std::uint32_t size, std::uint32_t capacity) {
    std::vector<std::byte> memory(capacity);
    Buffer data(memory);
    const auto first = static_cast<std::uint8_t>(random.below(256));
    const MadeCall made("Fill", client.binding());
    const auto filled = client.Fill(made.number(), size, first, data);
    bool right = data.contents().size() == size;
    for (std::size_t i = 0; right && i < size; ++i) right = data.contents()[i] == static_cast<std::byte>(first + i);
    return made.judge(filled, terms, right);
  }

  static bool sum(Client& client, const Terms& terms, Random& random, std::uint32_t size, bool in_place = false) {
    const std::vector<std::byte> data(size, static_cast<std::byte>(random.below(256)));
    const std::uint64_t expected = data.empty() ? 0 : size * std::to_integer<std::uint64_t>(data.front());
    const MadeCall made(in_place ? "SumInPlace" : "Sum", client.binding());
    const auto sum = [&] {
      if constexpr (requires { client.SumInPlace(made.number(), data); }) {
        if (in_place) return client.SumInPlace(made.number(), data);
      }
      return client.Sum(made.number(), data);
    }();
    return made.judge(sum, terms, sum && *sum == expected);
  }

  static bool nap(Client& client, const Terms& terms, std::uint32_t microseconds) {
    const MadeCall made("Nap", client.binding());
    const auto slept = client.Nap(made.number(), microseconds);
    return made.judge(slept, terms, slept && *slept == microseconds);
  }

  /// Opens a handle, uses it up to `most` - 1 times, and mostly closes it.
  static bool handles(Client& client, const Terms& terms, Random& random, std::uint32_t most) {
    const std::int64_t start = random.below(1000);
    bool usable = true;
    const auto counter = [&] {
      const MadeCall made("Open", client.binding());
      auto opened = client.Open(made.number(), start);
      usable = made.judge(opened, terms, true);
      return opened;
    }();
    if (!counter) return usable;
    std::int64_t value = start;
    bool sure = true;  // an aborted call may or may not have been executed
    for (std::uint32_t i = random.below(most); i > 0; --i) {
      const std::int64_t by = random.below(1000);
      const MadeCall made("Advance", client.binding());
      const auto advanced = client.Advance(made.number(), *counter, by);
      value += by;
      if (!made.judge(advanced, terms, advanced && (!sure || *advanced == value))) return false;
      sure = sure && advanced;
    }
    if (!terms.lasting && random.chance(20)) return true;  // left for the rundown
    const MadeCall made("Close", client.binding());
    const auto last = client.Close(made.number(), *counter);
    return made.judge(last, terms, last && (!sure || *last == value));
  }
};

}  // namespace lrpc::storm
