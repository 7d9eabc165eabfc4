// What a protocol or a session answers to a control().
#pragma once

#include <gtest/gtest.h>

#include "lrpc/netrpc/session_cache.h"

namespace lrpc::netrpc::test {

/// `protocol_or_session` has to know the question. Inside the monitor.
template <class Answer, class Asked>
[[nodiscard]] Answer asked(Asked& protocol_or_session, Answer question = {}) {
  EXPECT_EQ(control::ask(protocol_or_session, question), Errc::ok);
  return question;
}

}  // namespace lrpc::netrpc::test
