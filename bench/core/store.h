// Takes what was made into a member, or into a list.
#pragma once

#include <utility>

#include "lrpc/detail/shim/result.h"

namespace lrpc::bench {

/// Moves what was made into `into`, or returns the error.
template <class Into, class Made>
Status store(Into& into, Result<Made> made) {
  if (!made) return made.error();
  into = *std::move(made);
  return {};
}
/// The same to the end of a list.
template <class List, class Made>
Status append(List& list, Result<Made> made) {
  if (!made) return made.error();
  list.push_back(*std::move(made));
  return {};
}

}  // namespace lrpc::bench
