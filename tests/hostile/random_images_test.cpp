// Random images into every generated entry stub, both sides in one thread (gate `none`): no crash, no undefined status,
// no success for arguments that do not conform.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "conformance_service.h"
#include "garbage.h"
#include "inline_server.h"
#include "length.h"
#include "lrpc/detail/client/call/call.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using lrpc::shim::call_status::kFailed;
using lrpc::shim::call_status::kTold;

/// This process is both client and server.
class RandomImages : public testing::Test {
 protected:
  void SetUp() override {
    auto ends = lrpc::shim::make_socket_pair();
    ASSERT_TRUE(ends);
    ASSERT_TRUE(Conformance::serve_over(server_, std::move(ends->first), service_));
    auto client = Conformance::Client::import_over(std::move(ends->second), {.gate = lrpc::Gate::none});
    ASSERT_TRUE(client) << client.error().message();
    client_ = std::make_unique<Conformance::Client>(*std::move(client));
    here_.emplace(server_, client_->binding());
  }
  lrpc::client::BindingObject& object() { return lrpc::detail::StubAccess::object(client_->binding()); }

  lrpc::Server server_{{.pollers = 0}};
  ConformanceService service_{&server_, "/nonexistent/lrpcd.sock"};
  std::unique_ptr<Conformance::Client> client_;
  std::optional<InlineServer> here_;
};

/// Fills a procedure's image and the start of the tail: sometimes with random bits, sometimes with lengths near their
/// bounds.
void fill(Random& random, lrpc::client::Call& call, const lrpc::ProcedureDescriptor& procedure) {
  for (std::size_t at = 0; at < procedure.image_size; at += 4) {
    const auto bits = static_cast<std::uint32_t>(nasty_bits(random) >> 16);
    std::memcpy(call.image() + at, &bits, std::min<std::size_t>(4, procedure.image_size - at));
  }
  if (procedure.image_size > 0 && random.one_in(2))
    std::memset(call.image(), static_cast<int>(random.below(5)), std::min(16U, procedure.image_size));
  for (const lrpc::VariableParameter& variable : procedure.variable_parameters) {
    if (!variable.in || random.one_in(3)) continue;
    const std::array<std::uint32_t, 5> edges{0, variable.inline_capacity, variable.inline_capacity + 1, variable.bound,
                                             variable.bound + 1};
    const std::uint32_t length =
        random.pick<std::uint32_t>(edges) | (random.one_in(2) ? lrpc::VariableParameter::kInTail : 0U);
    std::memcpy(call.image() + variable.length_offset, &length, sizeof length);
    if (call.tail() == nullptr) continue;
    for (std::size_t at = 0; at < 64; at += 8)
      scribble(call.tail() + variable.tail_offset / 8 * 8 + at, nasty_bits(random));
  }
}

/// Whether the arguments in `image` conform to their declared types; only for procedures for which that is easy to
/// check.
bool conforms(const std::string& name, const std::byte* image) {
  const auto byte = [&](std::size_t at) { return std::to_integer<std::uint8_t>(image[at]); };
  std::int16_t offset = 0;
  std::uint32_t length = 0;
  if (name == "Flip") return byte(0) <= 1;
  if (name == "NextColour") return byte(0) == 1 || byte(0) == 2 || byte(0) == 4;
  if (name == "Halve") {
    std::memcpy(&offset, image + 2, sizeof offset);
    return byte(0) <= 100 && offset >= -10 && offset <= 10;
  }
  if (name == "Mirror") {
    std::memcpy(&length, image, sizeof length);
    return length <= 32 && (byte(36) == 1 || byte(36) == 2 || byte(36) == 4) && byte(88) <= 1 && byte(89) <= 100;
  }
  return true;
}

TEST_F(RandomImages, go_through_every_entry_stub_without_harm) {
  Random random(test_seed());
  const int images = rounds(500);
  std::map<std::string, int> returned;
  const auto procedures = static_cast<std::uint16_t>(Conformance::kPdl.procedures.size());
  for (std::uint16_t identifier = 0; identifier < procedures; ++identifier) {
    if (obeys_too_well(identifier)) continue;
    const lrpc::ProcedureDescriptor& procedure = Conformance::kPdl.procedures[identifier];
    const std::string name(procedure.name);
    // Procedures with large parameters are slow: they touch megabytes if the image says so.
    const bool large =
        std::ranges::any_of(procedure.variable_parameters, [](const auto& p) { return p.bound > 1'000'000; });
    for (int i = 0; i < (large ? images / 15 : images); ++i) {
      lrpc::client::Call call(object(), procedure.astack_class);
      ASSERT_TRUE(call.taken());
      fill(random, call, procedure);
      std::vector<std::byte> before(call.image(), call.image() + procedure.image_size);
      const std::uint16_t status = call.transfer(identifier);
      if ((status & kFailed) != 0) {
        EXPECT_EQ(static_cast<std::uint16_t>(lrpc::client::Call::failure(status)), status & ~(kFailed | kTold))
            << name << ": a failure without a name";
        continue;
      }
      EXPECT_LE(status, 2) << name;  // no procedure declares more than two errors
      if (status != 0) continue;
      ++returned[name];
      EXPECT_TRUE(conforms(name, before.data())) << name << " was executed with arguments that do not conform";
    }
  }
  for (const char* name : {"Null", "Add", "Flip", "NextColour", "Halve", "Greet", "Concatenate", "Sum", "SumInPlace",
                           "Reverse", "SmallBytes"}) {
    EXPECT_GT(returned[name], 0) << name << ": no image went all the way";
  }
  EXPECT_EQ(client_->Add(1, 2).value(), 3);
}

TEST_F(RandomImages, on_an_astack_of_another_class_are_no_call) {
  const auto classes = static_cast<std::uint16_t>(Conformance::kPdl.classes.size());
  for (std::uint16_t astack_class = 0; astack_class < classes; ++astack_class) {
    for (std::uint32_t identifier = 0; identifier < Conformance::kPdl.procedures.size() + 3; ++identifier) {
      const bool exists = identifier < Conformance::kPdl.procedures.size();
      if (exists && Conformance::kPdl.procedures[identifier].astack_class == astack_class) continue;
      lrpc::client::Call call(object(), astack_class);
      ASSERT_TRUE(call.taken());
      const std::uint16_t status = call.transfer(static_cast<std::uint16_t>(identifier));
      EXPECT_EQ(status, kFailed | static_cast<std::uint16_t>(Errc::bad_procedure))
          << identifier << " on class " << astack_class;
    }
  }
}

}  // namespace
}  // namespace testing_lrpc
