// What a row times: something that makes round trips to another domain.
#pragma once

#include <cstdint>
#include <span>

#include "lrpc/detail/shim/result.h"
#include "ticks.h"

namespace lrpc::bench {

/// Constructed in the bench's own process, where it also starts its peers. Used in the client process, which is forked
/// afterwards.
class Contender {
 public:
  Contender() = default;
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;
  virtual ~Contender() = default;

  /// Once, in the client process, before anything else.
  virtual Status connect() { return {}; }
  /// Before a block, not timed: wakes the peer.
  virtual void resume() {}
  /// After a block, not timed: returns once the peer sleeps and costs nothing.
  virtual void pause() {}
  /// Makes `count` round trips back to back.
  virtual void run(std::uint64_t count) = 0;
  /// Makes one round trip for each element, and stores there how many ticks it took.
  virtual void run_single(std::span<std::uint64_t> ticks) = 0;
  /// The error of a round trip that failed; ok if none has failed so far.
  [[nodiscard]] virtual Status health() const { return {}; }
};

/// Writes the loops for a Self with an inline `void round_trip()`, so that they contain no virtual call.
template <class Self>
class RoundTrips : public Contender {
 public:
  void run(std::uint64_t count) final {
    for (std::uint64_t i = 0; i < count; ++i) static_cast<Self*>(this)->round_trip();
  }
  void run_single(std::span<std::uint64_t> ticks) final {
    for (auto& one : ticks) one = ticks_of([this] { static_cast<Self*>(this)->round_trip(); });
  }
};

}  // namespace lrpc::bench
