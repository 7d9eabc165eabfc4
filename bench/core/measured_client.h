// A client that measures in a process of its own.
#pragma once

#include <chrono>
#include <utility>

#include "child.h"
#include "lrpc/detail/shim/result.h"
#include "placement.h"

namespace lrpc::bench {

/// What measure(figures) has written there, in a child on `seat`; blocks until it is done, for two minutes at most.
/// `Figures` is as Shared's T. Errors: those of Shared and Child; call_failed, with the reason, if `measure` fails.
template <class Figures, class Measure>
Result<Shared<Figures>> measured_by_client(const Seat& seat, Measure&& measure) {
  auto figures = Shared<Figures>::create();
  if (!figures) return figures.error();
  const Status ran = run_client(seat, std::chrono::minutes(2), [&]() -> Status {
    const Status done = measure(**figures);
    if (!done) return Error{Errc::call_failed, "the client: " + done.error().message()};
    return {};
  });
  if (!ran) return ran.error();
  return std::move(*figures);
}

}  // namespace lrpc::bench
