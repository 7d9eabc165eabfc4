// Several things measured in turns, so that what disturbs one block disturbs its neighbours too.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/ticks.h"
#include "report/row.h"

namespace lrpc::bench {

struct Subject {
  std::string name;
  std::function<bool()> once;  ///< One round trip; false: it failed, and the subject is dropped.
  /// How many operations `once` makes, so that calling it costs nothing beside short ones; times are of one operation.
  std::size_t operations = 1;
  std::function<bool()> before = {};  ///< Before each of its blocks, not timed; false: it failed, likewise.
  std::function<void()> after = {};   ///< After each block, not timed.
};

/// Nanoseconds an operation, one number a block; subjects x rounds. A subject that failed has fewer.
struct Alternated {
  std::vector<std::vector<double>> blocks;
  [[nodiscard]] double median_of(std::size_t subject) const;
  /// Median of the ratios (differences) of the blocks of one subject to those of another in the same round.
  [[nodiscard]] double ratio(std::size_t subject, std::size_t base) const;
  [[nodiscard]] double difference(std::size_t subject, std::size_t base) const;
  /// For a row: the median of the blocks; floor and ratio are to the subject `base`, if there is one.
  [[nodiscard]] Figures figures(std::size_t subject, std::optional<std::size_t> base = {}) const;
};

/// Of several instances of the same rows, subject i being one of row i mod `rows`: each round's median over a row's
/// instances.
[[nodiscard]] Alternated pooled(const Alternated& measured, std::size_t rows);

/// Warms each subject up, then runs `rounds` rounds of one block of about `block` each, in another order each time.
/// `rest`: sleeps for so long before each block, for what polls after the last call to stop. A subject that rests, or
/// has a `before`, makes a few untimed calls first.
[[nodiscard]] Alternated alternate(const std::vector<Subject>& subjects, const TickClock& clock, std::size_t rounds,
                                   std::chrono::nanoseconds block, std::chrono::nanoseconds rest = {});

}  // namespace lrpc::bench
