#include "alternate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "core/interrupt.h"
#include "report/statistics.h"

namespace lrpc::bench {

double Alternated::median_of(std::size_t subject) const { return median(blocks[subject]); }

double Alternated::ratio(std::size_t subject, std::size_t base) const {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(blocks[subject].size(), blocks[base].size()); ++i)
    ratios.push_back(blocks[subject][i] / blocks[base][i]);
  return median(ratios);
}

double Alternated::difference(std::size_t subject, std::size_t base) const {
  std::vector<double> differences;
  for (std::size_t i = 0; i < std::min(blocks[subject].size(), blocks[base].size()); ++i)
    differences.push_back(blocks[subject][i] - blocks[base][i]);
  return median(differences);
}

Figures Alternated::figures(std::size_t subject, std::optional<std::size_t> base) const {
  if (!base) return Figures::exactly(median_of(subject), blocks[subject].size());
  return Figures::exactly(median_of(subject), blocks[subject].size(), median_of(*base), ratio(subject, *base));
}

Alternated pooled(const Alternated& measured, std::size_t rows) {
  Alternated result;
  result.blocks.resize(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    std::size_t rounds = std::numeric_limits<std::size_t>::max();
    for (std::size_t i = row; i < measured.blocks.size(); i += rows)
      rounds = std::min(rounds, measured.blocks[i].size());
    for (std::size_t round = 0; round < rounds; ++round) {
      std::vector<double> instances;
      for (std::size_t i = row; i < measured.blocks.size(); i += rows) instances.push_back(measured.blocks[i][round]);
      result.blocks[row].push_back(median(std::move(instances)));
    }
  }
  return result;
}

Alternated alternate(const std::vector<Subject>& subjects, const TickClock& clock, std::size_t rounds,
                     std::chrono::nanoseconds block, std::chrono::nanoseconds rest) {
  Alternated result;
  result.blocks.resize(subjects.size());
  std::vector<std::size_t> calls(subjects.size(), 0);
  const auto timed = [&](std::size_t subject, std::size_t count) {
    const std::uint64_t before = ticks_begin();
    for (std::size_t i = 0; i < count; ++i)
      if (!subjects[subject].once()) return std::numeric_limits<double>::quiet_NaN();
    return clock.ns(ticks_end() - before) / static_cast<double>(count);
  };
  const auto prepared = [&](std::size_t subject) { return !subjects[subject].before || subjects[subject].before(); };
  const auto done = [&](std::size_t subject) {
    if (subjects[subject].after) subjects[subject].after();
  };
  for (std::size_t subject = 0; subject < subjects.size(); ++subject) {
    if (interrupted() || !prepared(subject)) continue;
    const double warm = timed(subject, 200);
    done(subject);
    if (std::isnan(warm)) continue;
    calls[subject] = std::max<std::size_t>(1, static_cast<std::size_t>(static_cast<double>(block.count()) / warm));
  }
  std::vector<std::size_t> order(subjects.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::minstd_rand random;  // the same sequence in every run
  for (std::size_t round = 0; round < rounds && !interrupted(); ++round) {
    // A new order, so that a subject does not always find the caches as the same other one has left them.
    std::ranges::shuffle(order, random);
    for (const std::size_t subject : order) {
      if (calls[subject] == 0 || interrupted()) continue;
      if (rest.count() > 0) interruptible_sleep(rest);
      if (!prepared(subject)) {
        calls[subject] = 0;
        continue;
      }
      if (rest.count() > 0 || subjects[subject].before)
        (void)timed(subject, std::max<std::size_t>(8, calls[subject] / 8));
      const double each = timed(subject, calls[subject]) / static_cast<double>(subjects[subject].operations);
      done(subject);
      if (std::isnan(each)) {
        calls[subject] = 0;
      } else {
        result.blocks[subject].push_back(each);
      }
    }
  }
  return result;
}

}  // namespace lrpc::bench
