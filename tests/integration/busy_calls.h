// Calls whose answers show whether callers were confused.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "conformance.client.h"

namespace testing_lrpc {

/// 1 if the call failed or returned another value.
template <class T>
[[nodiscard]] int wrong_unless(const lrpc::Result<T>& result, const T& wanted) {
  return result && *result == wanted ? 0 : 1;
}

/// The calls of one thread of a client: each answer is distinct for this thread. Returns the number of wrong ones.
[[nodiscard]] inline int wrong_answers(Conformance::Client& client, std::uint32_t thread, int calls) {
  int wrong = 0;
  std::vector<std::byte> data(3'000, static_cast<std::byte>(thread));
  for (int i = 0; i < calls; ++i) {
    const auto number = static_cast<std::int32_t>(thread * 100'000) + i;
    switch (i % 5) {
      case 0: wrong += wrong_unless(client.Add(number, 1), number + 1); break;
      case 1:
        wrong +=
            wrong_unless<lrpc::String<300>>(client.Greet(std::to_string(number)), "hello, " + std::to_string(number));
        break;
      case 2: wrong += wrong_unless(client.Sum(data), std::uint64_t{3'000} * (thread & 0xff)); break;  // in the tail
      case 3: {
        std::array<std::byte, 200> bytes{};
        bytes[0] = static_cast<std::byte>(i);
        bytes[199] = static_cast<std::byte>(thread);
        wrong += !client.BigInOut(bytes) || bytes[0] != static_cast<std::byte>(thread) ||
                 bytes[199] != static_cast<std::byte>(i);
        break;
      }
      default: {
        const auto checked = client.Check(101);
        wrong += checked.raised<Conformance::TooBig>() == nullptr;
      }
    }
  }
  return wrong;
}

/// What a client process reports at its end.
struct BusyReport {
  std::uint64_t wrong = 0;
  std::uint64_t calls = 0;  ///< Calls of Count.
  std::uint64_t sum = 0;    ///< Sum of the values that Count returned.
};

}  // namespace testing_lrpc
