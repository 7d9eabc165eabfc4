// A client whose server is the test itself: it executes nothing, and writes into the region what it likes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lrpc/detail/shim/call/region.h"
#include "private_answer.h"

namespace testing_lrpc {

/// `Client` and `kPdl` are those of a generated header.
template <class Client, const lrpc::Pdl& kPdl>
class UnservedClient : public testing::Test {
 protected:
  void SetUp() override {
    namespace shim = lrpc::shim;
    auto bell = shim::make_socket_pair();
    auto layout = shim::RegionLayout::of(kPdl.classes);
    ASSERT_TRUE(bell && layout);
    auto memory = shim::create_region(*layout);
    ASSERT_TRUE(memory);
    auto ends = answered_pair(encoded(bound_answer(kPdl.classes)), std::array{memory->get(), bell->second.get()});
    ASSERT_TRUE(ends) << ends.error().message();
    held_ = {std::move(bell->first), std::move(bell->second), std::move(ends->second)};
    auto client = Client::import_over(std::move(ends->first));
    ASSERT_TRUE(client) << client.error().message();
    client_ = std::make_unique<Client>(*std::move(client));
    auto region = shim::Region::map(*std::move(memory), *std::move(layout));
    ASSERT_TRUE(region);
    region_.emplace(*std::move(region));
  }

  using Heads = std::vector<lrpc::shim::AStackHead*>;
  /// The A-stacks for this procedure.
  Heads heads_of(std::string_view procedure) const {
    const auto found = std::ranges::find(kPdl.procedures, procedure, &lrpc::ProcedureDescriptor::name);
    Heads heads;
    for (std::uint32_t i = 0; i < region_->layout().astack_count(); ++i) {
      const lrpc::shim::AStack astack = region_->astack(i);
      if (astack.astack_class == found->astack_class) heads.push_back(astack.head);
    }
    return heads;
  }

  std::array<lrpc::UniqueFd, 3> held_;  ///< The server's descriptors.
  std::unique_ptr<Client> client_;
  std::optional<lrpc::shim::Region> region_;
};

}  // namespace testing_lrpc
