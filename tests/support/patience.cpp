// Linked into test programs: lengthens the libraries' time limits for answers, since answers take long on a loaded or
// frozen machine (docs/TESTS.md).
#include "eventually.h"
#include "libclient/src/import/answer_slack.h"
#include "libserver/src/clerk/answer_time.h"

namespace {

[[maybe_unused]] const bool patient = [] {
  lrpc::client::answer_slack = testing_lrpc::kPatience;
  lrpc::server::answer_time = testing_lrpc::kPatience;
  return true;
}();

}  // namespace
