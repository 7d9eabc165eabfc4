// The command line: exit statuses, and which output goes where.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace {

namespace fs = std::filesystem;

struct Outcome {
  int status = -1;
  std::string text;  ///< Standard output and standard error together.
};

Outcome run(const std::string& arguments) {
  Outcome outcome;
  FILE* const pipe = popen((LRPC_STUBGEN " " + arguments + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> chunk{};
  for (std::size_t size = 0; (size = fread(chunk.data(), 1, chunk.size(), pipe)) > 0;)
    outcome.text.append(chunk.data(), size);
  outcome.status = WEXITSTATUS(pclose(pipe));
  return outcome;
}

std::string read(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

class Command : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "lrpc-stubgen-test.XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { fs::remove_all(directory_); }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ / name, std::ios::binary) << text;
    return (directory_ / name).string();
  }
  static std::string golden(const std::string& name) { return (fs::path(LRPC_GOLDEN_DIR) / "output" / name).string(); }

  fs::path directory_;
};

TEST_F(Command, writes_three_headers_into_a_directory_that_it_makes) {
  const fs::path out = directory_ / "a" / "b";
  const Outcome outcome = run(golden("files.lrpc") + " --out " + out.string());
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_EQ(outcome.text, "");
  for (const char* name : {"files.types.h", "files.client.h", "files.server.h"})
    EXPECT_EQ(read(out / name), read(golden(name)));
  EXPECT_EQ(std::distance(fs::directory_iterator(out), fs::directory_iterator()), 3);
}

TEST_F(Command, writes_a_fuzzer_if_asked_for_one) {
  const fs::path out = directory_ / "out";
  const Outcome outcome = run(golden("files.lrpc") + " --fuzz --out " + out.string());
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_EQ(read(out / "files_fuzzer.cpp"), read(golden("files_fuzzer.cpp")));
  EXPECT_EQ(std::distance(fs::directory_iterator(out), fs::directory_iterator()), 4);
  EXPECT_NE(run("files.lrpc --fuzz --list-outputs --out there").text.find("there/files_fuzzer.cpp\n"),
            std::string::npos);
}

TEST_F(Command, writes_what_rpcgen_reads_if_asked_to) {
  const std::string out = " --out " + (directory_ / "out").string();
  const Outcome outcome = run(golden("files.lrpc") + out + " --xdr 0x20000000");
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_EQ(read(directory_ / "out" / "files.x"), read(golden("files.x")));
  EXPECT_NE(run("files.lrpc --xdr 1 --list-outputs --out there").text.find("there/files.x\n"), std::string::npos);
  EXPECT_EQ(run(golden("files.lrpc") + out + " --xdr 0").status, 2);
  const Outcome none = run(golden("handles.lrpc") + out + " --xdr 1");
  EXPECT_EQ(none.status, 1);
  EXPECT_NE(none.text.find("handles.lrpc: --xdr: Sun RPC can call none of its procedures"), std::string::npos)
      << none.text;
}

TEST_F(Command, exits_1_and_writes_nothing_if_the_input_has_errors) {
  const std::string file = write("bad.lrpc", "interface Bad version 1.0 { procedure A(x: nothing); }");
  const Outcome outcome = run(file + " --out " + (directory_ / "out").string());
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.text.find(file + ":1:44: error: there is no type 'nothing'\n"), 0U) << outcome.text;
  EXPECT_FALSE(fs::exists(directory_ / "out"));
}

TEST_F(Command, only_looks_if_asked_to_check) {
  const Outcome outcome = run(golden("files.lrpc") + " --check --out " + (directory_ / "out").string());
  EXPECT_EQ(outcome.status, 0);
  EXPECT_FALSE(fs::exists(directory_ / "out"));
}

TEST_F(Command, prints_the_pdl_as_a_table) {
  const Outcome outcome = run(golden("files.lrpc") + " --print-pdl");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.text, read(golden("files.pdl.txt")));
}

TEST_F(Command, lists_its_outputs_without_reading_the_input) {
  EXPECT_EQ(run("nowhere/x.lrpc --list-outputs --out gen").text, "gen/x.types.h\ngen/x.client.h\ngen/x.server.h\n");
}

TEST_F(Command, exits_2_if_it_is_used_wrongly_or_a_file_cannot_be_read_or_written) {
  const std::string good = write("good.lrpc", "interface Good version 1.0 { procedure A(); }");
  fs::create_directory(directory_ / "folder.lrpc");
  const std::string in_the_way = write("in_the_way", "");
  for (const std::string& arguments :
       {std::string(), std::string("--nonsense"), good, (directory_ / "missing.lrpc").string() + " --check",
        (directory_ / "folder.lrpc").string() + " --check", write("wrong.idl", "") + " --check",
        "'" + write("a b.lrpc", "") + "' --check", good + " --out " + in_the_way + "/x",
        good + " --out " + in_the_way}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments << "\n" << outcome.text;
    EXPECT_FALSE(outcome.text.empty()) << arguments;
  }
}

TEST_F(Command, shares_no_draft_with_another_run_and_leaves_none_if_it_cannot_write) {
  const std::string good = write("good.lrpc", "interface Good version 1.0 { procedure A(); }");
  const fs::path out = directory_ / "out";
  fs::create_directories(out / "good.types.h.new");  // as a draft of another run: it is in nobody's way
  const Outcome outcome = run(good + " --out " + out.string());
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  fs::remove(out / "good.server.h");
  fs::create_directory(out / "good.server.h");
  EXPECT_EQ(run(good + " --out " + out.string()).status, 2);
  EXPECT_EQ(std::distance(fs::directory_iterator(out), fs::directory_iterator()), 4);
}

TEST_F(Command, exits_2_if_it_cannot_print) {
  const std::string wrong = write("wrong.idl", "");
  for (const std::string& arguments : {golden("files.lrpc") + " --print-pdl", golden("files.lrpc") + " --list-outputs",
                                       wrong + " --check", std::string("--help")}) {
    EXPECT_EQ(run(arguments + " >/dev/full").status, 2) << arguments;  // including the standard error: see run()
  }
}

TEST_F(Command, says_its_version_and_how_it_is_used) {
  EXPECT_EQ(run("--version").text.find("lrpc-stubgen "), 0U);
  EXPECT_EQ(run("--version").status, 0);
  EXPECT_NE(run("--help").text.find("--print-pdl"), std::string::npos);
}

}  // namespace
