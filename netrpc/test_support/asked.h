// What a protocol or a session answers to a control().
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <variant>

#include "lrpc/detail/shim/result.h"
#include "lrpc/netrpc/control.h"

namespace lrpc::netrpc::test {

/// `protocol_or_session` has to know the question. Inside the monitor.
template <class Answer, class Asked>
[[nodiscard]] Answer asked(Asked& protocol_or_session, Answer question = {}) {
  control::Request request = std::move(question);
  EXPECT_EQ(protocol_or_session.control(request), Errc::ok);
  return std::get<Answer>(std::move(request));
}

}  // namespace lrpc::netrpc::test
