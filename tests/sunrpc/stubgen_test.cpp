// rpcgen accepts what `lrpc-stubgen --xdr` writes for any interface, and a C compiler accepts what rpcgen writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "sun_host.h"
#include "temporary_directory.h"

namespace lrpc::netrpc::test {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files() {
  std::vector<fs::path> found{LRPC_CLASHES};
  for (const auto& entry : fs::directory_iterator(LRPC_GOLDEN_OUTPUT))
    if (entry.path().extension() == ".x") found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

class StubgenXdr : public testing::TestWithParam<fs::path> {
 protected:
  const testing_lrpc::TemporaryDirectory directory_;
};

TEST_P(StubgenXdr, is_read_by_rpcgen_and_the_compiler) {
  // The file's name differs from that of every system header.
  fs::copy_file(GetParam(), directory_ / "it.x");
  for (const auto& [option, file] :
       {std::pair{"-h", "it.h"}, {"-c", "it_xdr.c"}, {"-l", "it_clnt.c"}, {"-m", "it_svc.c"}}) {
    const Said made =
        run("sh -c 'cd " + directory_.path().string() + " && " LRPC_RPCGEN " -C " + option + " -o " + file + " it.x'");
    EXPECT_TRUE(made.well) << made.text;
    const Said compiled = run(LRPC_CC " -w -fsyntax-only -I " LRPC_TIRPC_INCLUDE " " + directory_ / file);
    EXPECT_TRUE(compiled.well) << file << ": " << compiled.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Interfaces, StubgenXdr, testing::ValuesIn(files()),
                         [](const auto& one) { return one.param.stem().string(); });

}  // namespace
}  // namespace lrpc::netrpc::test
