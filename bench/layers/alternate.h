// Measures several subjects in turns, so that a disturbance of one block affects its neighbours, too.
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
  /// How many operations one call of `once` makes: enough that the cost of that call does not count beside short
  /// operations. Times are per operation.
  std::size_t operations = 1;
  std::function<bool()> before = {};  ///< Called before each of its blocks, untimed; false: it failed, and the subject
                                      ///< is dropped.
  std::function<void()> after = {};   ///< Called after each of its blocks, untimed.
};

/// Nanoseconds per operation, one number for each subject and round; a subject that failed has fewer.
struct Alternated {
  std::vector<std::vector<double>> blocks;
  [[nodiscard]] double median_of(std::size_t subject) const;
  /// Median of the ratios (differences) of one subject's blocks to another's in the same round.
  [[nodiscard]] double ratio(std::size_t subject, std::size_t base) const;
  [[nodiscard]] double difference(std::size_t subject, std::size_t base) const;
  /// The figures of a row: the median of the blocks; floor and ratio are relative to the subject `base`, if there is
  /// one.
  [[nodiscard]] Figures figures(std::size_t subject, std::optional<std::size_t> base = {}) const;
};

/// Merges several instances of the same rows, where subject i is an instance of row i mod `rows`. A row's block is the
/// median over its instances in the same round.
[[nodiscard]] Alternated pooled(const Alternated& measured, std::size_t rows);

/// Warms each subject up, then runs `rounds` rounds with one block of about `block` for each subject, in a new order
/// each round. Before each block it sleeps for `rest`, so that pollers that continue after the last call can stop. If
/// there is a `rest` or a `before`, a few untimed calls precede the block.
[[nodiscard]] Alternated alternate(const std::vector<Subject>& subjects, const TickClock& clock, std::size_t rounds,
                                   std::chrono::nanoseconds block, std::chrono::nanoseconds rest = {});

}  // namespace lrpc::bench
