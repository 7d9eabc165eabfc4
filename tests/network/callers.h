// Several threads that call one host with numbered calls.
#pragma once

#include <algorithm>
#include <thread>

#include "wire_host.h"

namespace testing_wires {

/// Calls `server` from `threads` threads. Each stops when all together have made `calls` calls, or when `more`, which
/// gets the answer to each call, returns false. Returns the answers by number, as many as calls were made.
template <class More>
std::vector<Answer> call_from_threads(WireHost& client, HostAddress server, int threads, std::size_t calls,
                                      std::atomic<std::size_t>& made, More more) {
  std::vector<Answer> answers(calls);
  std::vector<std::thread> callers;
  for (int i = 0; i < threads; ++i) {
    callers.emplace_back([&] {
      for (std::size_t number = made++; number < calls; number = made++) {
        answers[number] = client.call(server, 16, number);
        if (!more(answers[number])) break;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  answers.resize(std::min(made.load(), calls));
  return answers;
}

}  // namespace testing_wires
